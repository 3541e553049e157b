// Continues a list of token ids with a bundle: moert-example MODEL.moeb 0,17,4 [TOKENS]
#include <moert/moert.hpp>

#include <cstdio>
#include <cstdlib>

static int complain(const moert::Error &error) {
  std::fprintf(stderr, "%s\n", error.toString().c_str());
  return 1;
}

int main(int argc, char **argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: moert-example MODEL.moeb ID,ID,... [TOKENS]\n");
    return 2;
  }
  std::vector<std::int32_t> prompt;
  for (char *at = argv[2]; *at; at += *at == ',')
    prompt.push_back(static_cast<std::int32_t>(std::strtol(at, &at, 10)));

  auto bundle = moert::Bundle::open(argv[1]);
  if (!bundle)
    return complain(bundle.error());
  auto model = moert::Model::load(*bundle);
  if (!model)
    return complain(model.error());
  auto session = moert::Session::create(*model);
  if (!session)
    return complain(session.error());

  moert::GenerateOptions options;
  options.maximumTokens = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 16;
  options.onToken = [](std::int32_t id) { return std::printf("%d\n", id) > 0; };
  auto ids = session->generate(prompt, options);
  if (!ids)
    return complain(ids.error());
  std::printf("%zu tokens\n", ids->size());
  return 0;
}
