// Writes the test bundle to a folder: for tests that start another program.
#include "test/Runtime/TestBundle.h"

//   write-test-bundle FOLDER [recurrent]
int main(int argc, char **argv) {
  if (argc < 2)
    return 2;
  moert::test::writeTestBundle(argv[1], {.recurrent = argc > 2});
  return 0;
}
