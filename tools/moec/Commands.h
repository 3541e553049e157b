// What the command line says, and what it starts. CommandLine.cpp alone knows the command-line
// library (and its exceptions).
#ifndef MOEC_TOOLS_MOEC_COMMANDS_H
#define MOEC_TOOLS_MOEC_COMMANDS_H

#include <cstdint>
#include <string>
#include <vector>

namespace moec {

// Scripts rely on these numbers.
enum class ExitCode : int { Success = 0, Input = 1, Usage = 2, Internal = 3 };

struct CompileCommand {
  std::string input;
  std::string output;
  std::string targets = "cpu";
  std::string precision; // empty: the model's own
  bool batchInvariant = false;
  bool ptxOnly = false;
  std::string from; // empty: what the input is
  std::string to = "bundle";
  std::string dumpPhases; // folder; empty: none
  bool copyWeights = false;
  std::int64_t blockTokens = 16;
  std::vector<std::string> allowUnused;
  std::vector<std::string> settings; // FIELD=VALUE
  std::string layers;                // N or N-M; empty: all
  std::vector<std::string> disabledPasses;
  // ONNX files.
  std::string tokenizer; // folder; empty: beside the file
  std::string interface = "auto";
  std::string tokensInput, positionsInput, logitsOutput;
  std::vector<std::string> past, present;
  std::vector<std::string> dimensions; // NAME=VALUE
  bool timing = false;
};

struct RunCommand {
  std::string bundle;
  std::string weights;
  unsigned threads = 0;
  std::string variant;
  std::string device = "auto";
  bool json = false;
  bool reference = false;
  // As a language model.
  bool hasPrompt = false;
  std::string prompt;
  std::string ids; // "5,6,7" or "@file.npy"
  std::vector<std::string> images; // files
  std::uint64_t maximumTokens = 128;
  double temperature = 0;
  std::int64_t topK = 0;
  double topP = 1;
  std::uint64_t seed = 0;
  bool ignoreEos = false;
  bool special = false;
  std::string logits; // file; empty: none
  std::uint64_t chunk = 0;
  std::string profile; // file for a timeline; empty: none
  // As a program on plain tensors.
  std::vector<std::string> inputs; // NAME=file.npy
  std::string outputs;             // folder
  std::string entry;
};

struct EvalCommand {
  std::string bundle;
  std::string weights;
  unsigned threads = 0;
  std::string variant;
  std::string device = "auto";
  bool json = false;
  std::string ids;
  std::uint64_t window = 512;
};

struct BenchCommand {
  std::string bundle;
  std::string weights;
  unsigned threads = 0;
  std::string variant;
  std::string device = "auto";
  bool json = false;
  std::uint64_t promptTokens = 512;
  std::uint64_t newTokens = 64;
  std::uint64_t repetitions = 3;
  // Of a program on plain tensors.
  std::vector<std::string> dimensions; // NAME=N
  std::string entry;
};

struct VerifyCommand {
  std::string bundle;
  std::string weights;
  unsigned threads = 0;
  std::string variant;
  std::string device = "auto";
  bool json = false;
  bool reference = false; // as without --against
  std::string against;    // file; empty: the interpreter
  std::string with;       // device whose compiled code stands for the interpreter; empty: none
  std::string level = "smoke";
  std::string report; // file; empty: none
  std::string referenceProgram, referenceWeights;
  std::uint64_t tokens = 0; // of the longest sequence; 0: the level's
  std::uint64_t seed = 0;
  double toleranceF32 = 1e-5;
  double toleranceLogits = 1e-4;
  double toleranceBF16 = 2.5e-3;
  double toleranceF16 = 3.2e-4;
};

struct InspectCommand {
  std::string bundle;
  std::string weights;
  bool json = false;
  bool verify = false;
  bool commands = false;
};

struct TokenizeCommand {
  std::string input; // a folder or a bundle
  bool hasText = false;
  std::string text;
  std::vector<std::string> files;
  std::string ids; // to be decoded; empty: encode
  bool special = false;
  bool timing = false;
};

ExitCode runCompile(const CompileCommand &command);
ExitCode runRun(const RunCommand &command);
ExitCode runEval(const EvalCommand &command);
ExitCode runBench(const BenchCommand &command);
ExitCode runVerify(const VerifyCommand &command);
ExitCode runInspect(const InspectCommand &command);
ExitCode runTokenize(const TokenizeCommand &command);

} // namespace moec

#endif
