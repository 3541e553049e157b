// Options of AddressSanitizer for programs that are built with it but use libMLIR, which is not:
// containers and arenas that both work on are annotated by our half alone, so that reading what
// libMLIR put there would be an error.
#if __has_feature(address_sanitizer)
extern "C" const char *__asan_default_options() {
  return "detect_container_overflow=0:allow_user_poisoning=0";
}
#endif
