// The command line: flags, their ranges and their help. The only unit of the tool that knows the
// command-line library, which reports errors by exceptions.

#include "tools/moec/Commands.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>
#include <sstream>
#include <stdexcept>

using namespace moec;

namespace {

std::string versionText() { return std::string("moec ") + MOEC_VERSION; }

// A check of a count; the library's own range checks print floating-point bounds.
CLI::Validator countFrom(std::uint64_t least) {
  return CLI::Validator(
      [least](std::string &text) -> std::string {
        std::uint64_t value = 0;
        if (!CLI::detail::lexical_cast(text, value) || text.find('-') != std::string::npos ||
            value < least)
          return "expected a whole number of at least " + std::to_string(least) + ", found '" +
                 text + "'";
        return {};
      },
      "");
}

CLI::Validator numberBetween(double least, double most, bool leastIncluded,
                             const std::string &range) {
  return CLI::Validator(
      [=](std::string &text) -> std::string {
        double value = 0;
        if (!CLI::detail::lexical_cast(text, value) || !(value <= most) ||
            !(leastIncluded ? value >= least : value > least))
          return "expected a number " + range + ", found '" + text + "'";
        return {};
      },
      "");
}

CLI::Validator nameEqualsValue() {
  return CLI::Validator(
      [](std::string &text) -> std::string {
        std::size_t equals = text.find('=');
        if (equals == 0 || equals == std::string::npos || equals + 1 == text.size())
          return "expected NAME=VALUE, found '" + text + "'";
        return {};
      },
      "");
}

CLI::Validator isDevice() {
  return CLI::Validator(
      [](std::string &text) -> std::string {
        bool isNumbered = text.rfind("cuda:", 0) == 0 && text.size() > 5 && text.size() < 10 &&
                          text.find_first_not_of("0123456789", 5) == std::string::npos;
        if (text != "auto" && text != "cpu" && text != "cuda" && !isNumbered)
          return "expected cpu, cuda, cuda:N or auto, found '" + text + "'";
        return {};
      },
      "");
}

// The library prints descriptions as one line each; this one breaks them.
class WrappingFormatter : public CLI::Formatter {
public:
  WrappingFormatter() { column_width(30); }
  std::string make_option_desc(const CLI::Option *option) const override {
    return wrap(CLI::Formatter::make_option_desc(option), 70);
  }

private:
  static std::string wrap(const std::string &text, std::size_t width) {
    std::string result;
    std::size_t column = 0;
    std::istringstream words(text);
    for (std::string word; words >> word;) {
      if (column > 0 && column + 1 + word.size() > width) {
        result += '\n';
        column = 0;
      } else if (column > 0) {
        result += ' ';
        ++column;
      }
      result += word;
      column += word.size();
    }
    return result;
  }
};

struct CommandLine {
  CLI::App app{"moec compiles Mixture-of-Experts language models ahead of time into bundles of "
               "native code, and runs them."};
  CompileCommand compile;
  RunCommand run;
  EvalCommand eval;
  BenchCommand bench;
  VerifyCommand verify;
  InspectCommand inspect;
  TokenizeCommand tokenize;

  CommandLine();
  void addCompile();
  void addRun();
  void addEval();
  void addBench();
  void addVerify();
  void addInspect();
  void addTokenize();
  template <typename Command>
  void addLoading(CLI::App *sub, Command &command);
};

CommandLine::CommandLine() {
  app.name("moec");
  app.formatter(std::make_shared<WrappingFormatter>()); // subcommands inherit it
  app.set_version_flag("--version", versionText(), "print the version");
  app.set_help_flag("-h,--help", "print this text");
  app.require_subcommand(1);
  app.footer("A first session:\n"
             "  moec compile path/to/checkpoint -o model.moeb    from a folder with config.json "
             "and safetensors\n"
             "  moec run model.moeb --prompt 'Once upon a time'\n"
             "\n"
             "'moec COMMAND --help' explains a command. Exit codes: 0 success, 1 an input is "
             "wrong, 2 the command line is\n"
             "wrong, 3 a defect of moec.");
  addCompile();
  addRun();
  addEval();
  addBench();
  addVerify();
  addInspect();
  addTokenize();
}

void CommandLine::addCompile() {
  CLI::App *sub = app.add_subcommand("compile", "compile a model into a bundle");
  sub->add_option("input", compile.input,
                  "a checkpoint folder (config.json and safetensors files), an .onnx file, or an "
                  ".mlir file of one of "
                  "the phases")
      ->required()
      ->type_name("INPUT");
  sub->add_option("-o,--output", compile.output,
                  "the bundle to write, a folder that ends in .moeb; with --to, a text file ('-': "
                  "standard output)")
      ->required()
      ->type_name("OUT");
  sub->add_option("--target", compile.targets,
                  "what to compile for: 'cpu' (this machine), or micro-architectures such as "
                  "cpu:x86-64-v3 and "
                  "cpu:sapphirerapids; several, separated by commas, go into one bundle, and the "
                  "runtime takes the first "
                  "that fits")
      ->type_name("T")
      ->capture_default_str();
  sub->add_option("--precision", compile.precision,
                  "type of activations between and inside ops, f32 or bf16; sums, norms and "
                  "routing are f32 always. The "
                  "default is the model's own type")
      ->check(CLI::IsMember({"f32", "bf16"}))
      ->type_name("TYPE");
  sub->add_flag("--batch-invariant", compile.batchInvariant,
                "fix kernels and the order of sums, so that a sequence's results depend on nothing "
                "else in the batch and "
                "not on how the prompt is cut; costs speed");
  sub->add_flag("--ptx-only", compile.ptxOnly,
                "for GPUs: leave out machine code, which ptxas makes where it is on the PATH; the "
                "driver then compiles the PTX when the bundle is loaded");
  sub->add_flag("--copy-weights", compile.copyWeights,
                "copy the weights into the bundle instead of referring to the input's files");
  sub->add_option("--block-tokens", compile.blockTokens,
                  "tokens in one block of the paged KV cache")
      ->check(countFrom(1))
      ->type_name("N")
      ->capture_default_str();
  sub->add_option("--allow-unused", compile.allowUnused,
                  "accept tensors of the checkpoint that the model does not use and whose names "
                  "match; '*' stands for "
                  "any text; may be repeated")
      ->type_name("PATTERN")
      ->allow_extra_args(false);

  sub->add_option(
         "--set", compile.settings,
         "use another value for a field of config.json: rms_norm_eps=1e-6, "
         "rope_parameters.rope_theta=10000, with a '+' in front for a field that it does not "
         "have; may be repeated")
      ->type_name("FIELD=VALUE")
      ->allow_extra_args(false);

  sub->add_option("--layers", compile.layers,
                  "build only these layers, counted from 0, between the embedding and the head: to "
                  "check and time real layers of a model that does not fit")
      ->type_name("N-M");

  const char *onnx = "ONNX files";
  sub->add_option("--tokenizer", compile.tokenizer,
                  "folder of tokenizer.json, tokenizer_config.json and generation_config.json, "
                  "where they are not beside "
                  "the .onnx file")
      ->type_name("DIR")
      ->group(onnx);
  sub->add_option(
         "--interface", compile.interface,
         "'auto': a language model where token ids, positions, past and present pairs and logits "
         "are recognised; "
         "'language-model': an error where they are not; 'tensors': inputs and outputs as they are")
      ->check(CLI::IsMember({"auto", "language-model", "tensors"}))
      ->type_name("KIND")
      ->capture_default_str()
      ->group(onnx);
  sub->add_option("--tokens-input", compile.tokensInput, "name of the input of token ids")
      ->type_name("NAME")
      ->group(onnx);
  sub->add_option("--positions-input", compile.positionsInput, "name of the input of positions")
      ->type_name("NAME")
      ->group(onnx);
  sub->add_option("--logits-output", compile.logitsOutput, "name of the output of logits")
      ->type_name("NAME")
      ->group(onnx);
  sub->add_option("--past-input", compile.past,
                  "names of the inputs of past keys and values: key, value of each layer in order; "
                  "comma-separated")
      ->type_name("NAMES")
      ->allow_extra_args(false)
      ->delimiter(',')
      ->group(onnx);
  sub->add_option(
         "--present-output", compile.present,
         "names of the outputs of present keys and values, in the same order; comma-separated")
      ->type_name("NAMES")
      ->allow_extra_args(false)
      ->delimiter(',')
      ->group(onnx);
  sub->add_option("--dimension", compile.dimensions,
                  "a value for a dimension that the file names; may be repeated")
      ->check(nameEqualsValue())
      ->type_name("NAME=N")
      ->allow_extra_args(false)
      ->group(onnx);

  const char *phases = "Looking inside";
  CLI::Validator isPhase = CLI::IsMember({"moe", "opt", "plan", "kernel", "target"});
  sub->add_option("--from", compile.from,
                  "phase of an .mlir input: moe, opt, plan, kernel or target (default: moe)")
      ->check(isPhase)
      ->type_name("PHASE")
      ->group(phases);
  sub->add_option("--to", compile.to,
                  "stop after a phase and write its text: moe, opt, plan, kernel or target")
      ->check(CLI::IsMember({"moe", "opt", "plan", "kernel", "target", "bundle"}))
      ->type_name("PHASE")
      ->group(phases);
  sub->add_option("--dump-phases", compile.dumpPhases,
                  "write the text of every phase into this folder")
      ->type_name("DIR")
      ->group(phases);
  sub->add_option(
         "--disable-pass", compile.disabledPasses,
         "leave out an optimising pass, such as moec-fuse-rotary; comma-separated or repeated")
      ->type_name("PASS")
      ->allow_extra_args(false)
      ->delimiter(',')
      ->group(phases);
  sub->add_flag("--timing", compile.timing, "print the time of each pass, on standard error")
      ->group(phases);

  sub->footer("Examples:\n"
              "  moec compile gpt-oss-20b -o gpt-oss-20b.moeb\n"
              "      for this machine; weights stay where they are and the bundle refers to them\n"
              "  moec compile gpt-oss-20b -o fleet.moeb --target=cpu:sapphirerapids,cpu:x86-64-v3 "
              "--copy-weights\n"
              "      a bundle of two variants that carries its weights\n"
              "  moec compile model.onnx -o model.moeb --tokenizer path/to/checkpoint\n"
              "  moec compile gpt-oss-20b --to=moe -o -\n"
              "      the imported model as text\n"
              "  moec compile model.plan.mlir --from=plan -o model.moeb\n"
              "      continues from a dumped phase");
}

template <typename Command>
void CommandLine::addLoading(CLI::App *sub, Command &command) {
  sub->add_option("bundle", command.bundle, "a bundle that 'moec compile' wrote")
      ->required()
      ->type_name("BUNDLE");
  sub->add_option("--weights", command.weights, "look for referenced weight files in this folder")
      ->type_name("DIR");
  sub->add_option("--threads", command.threads,
                  "threads that compute (default: one for each core that the process may use)")
      ->check(countFrom(1))
      ->type_name("N");
  sub->add_option("--variant", command.variant,
                  "the target to run, such as cpu:x86-64-v3, where a bundle holds several "
                  "(default: the first that fits)")
      ->type_name("T");
  sub->add_option("--device", command.device,
                  "where to run: 'cpu', 'cuda' (the first GPU that fits), 'cuda:N' (GPU number N), "
                  "or 'auto': what the first variant that fits is for")
      ->check(isDevice())
      ->type_name("D")
      ->capture_default_str();
  sub->add_flag("--json", command.json, "print one JSON object on the last line");
}

void CommandLine::addRun() {
  CLI::App *sub = app.add_subcommand("run", "generate text, or run a program on tensors");
  addLoading(sub, run);
  sub->add_option("--profile", run.profile,
                  "write when each launch ran, in Chrome's trace format: for ui.perfetto.dev")
      ->type_name("OUT.json");
  const char *generation = "Generating text";
  auto *prompt = sub->add_option("--prompt", run.prompt, "the text to continue")
                     ->type_name("TEXT")
                     ->group(generation);
  auto *ids = sub->add_option("--ids", run.ids,
                              "the prompt as token ids instead of text: '5,6,7', or '@file.npy'")
                  ->type_name("IDS")
                  ->group(generation);
  prompt->excludes(ids);
  sub->add_option("--image", run.images,
                  "a JPEG or PNG file for the prompt's next placeholder, which the model names: "
                  "<|media_pad|> for Kimi K3; may be repeated. Images above the model's limits are "
                  "made smaller as transformers' processor of Kimi K2.5 does it")
      ->type_name("FILE")
      ->allow_extra_args(false)
      ->group(generation);
  sub->add_option("--max-tokens", run.maximumTokens, "stop after so many new tokens")
      ->check(countFrom(0))
      ->type_name("N")
      ->capture_default_str()
      ->group(generation);
  sub->add_option("--temperature", run.temperature,
                  "0 takes the most likely token each time; higher is more varied")
      ->check(numberBetween(0, 1e6, true, "of at least 0"))
      ->type_name("X")
      ->capture_default_str()
      ->group(generation);
  sub->add_option("--top-k", run.topK, "sample from the K most likely tokens only; 0: from all")
      ->check(countFrom(0))
      ->type_name("K")
      ->capture_default_str()
      ->group(generation);
  sub->add_option("--top-p", run.topP,
                  "sample from the most likely tokens that together have this probability")
      ->check(numberBetween(0, 1, false, "above 0 and at most 1"))
      ->type_name("P")
      ->capture_default_str()
      ->group(generation);
  sub->add_option("--seed", run.seed, "of the sampling; the same seed gives the same text")
      ->check(countFrom(0))
      ->type_name("N")
      ->capture_default_str()
      ->group(generation);
  sub->add_flag("--ignore-eos", run.ignoreEos, "go on after an end-of-text token")
      ->group(generation);
  sub->add_flag("--special", run.special, "print special tokens, too")->group(generation);
  sub->add_option("--logits", run.logits,
                  "write the prompt's logits, f32 [prompt length, vocabulary]")
      ->type_name("OUT.npy")
      ->group(generation);
  sub->add_option("--chunk", run.chunk,
                  "feed the prompt in chunks of N tokens (1: as decode steps); 0: all at once")
      ->check(countFrom(0))
      ->type_name("N")
      ->capture_default_str()
      ->group(generation);
  sub->add_flag(
      "--reference", run.reference,
      "compute with the reference interpreter instead of the compiled code: slow and exact");

  const char *tensors = "Running a program on tensors";
  auto *inputs = sub->add_option("--input", run.inputs, "an input of the program; may be repeated")
                     ->check(nameEqualsValue())
                     ->type_name("NAME=FILE.npy")
                     ->allow_extra_args(false)
                     ->group(tensors);
  auto *outputs =
      sub->add_option(
             "--outputs", run.outputs,
             "folder for the outputs, one NAME.npy each; types that numpy lacks are stored as "
             "ml_dtypes stores them")
          ->type_name("DIR")
          ->group(tensors);
  sub->add_option("--entry", run.entry, "which program, where the bundle holds several")
      ->type_name("NAME")
      ->group(tensors)
      ->needs(outputs);
  inputs->needs(outputs)->excludes(prompt)->excludes(ids);
  outputs->excludes(prompt)->excludes(ids);
  sub->callback([this, prompt, ids, outputs] {
    run.hasPrompt = prompt->count() > 0;
    if (prompt->count() + ids->count() + outputs->count() == 0)
      throw CLI::ValidationError(
          "run", "give a prompt (--prompt TEXT or --ids IDS), or --input NAME=FILE.npy and "
                 "--outputs DIR");
  });
  sub->footer(
      "Examples:\n"
      "  moec run model.moeb --prompt 'And it came to pass' --max-tokens 50\n"
      "  moec run model.moeb --prompt 'A poem:' --temperature 0.8 --top-p 0.95 --seed 7\n"
      "  moec run model.moeb --ids @prompt.npy --logits logits.npy --max-tokens 0 --json\n"
      "  moec run graph.moeb --input x=x.npy --input y=y.npy --outputs results\n"
      "\n"
      "With --json the last line holds prompt_ids, generated_ids, text, time_to_first_token_s and\n"
      "time_per_token_s, and the text is not streamed.");
}

void CommandLine::addEval() {
  CLI::App *sub = app.add_subcommand("eval", "measure the perplexity of a text");
  addLoading(sub, eval);
  sub->add_option("--ids", eval.ids, "the text as token ids: '@file.npy', or '5,6,7'")
      ->required()
      ->type_name("IDS");
  sub->add_option("--window", eval.window,
                  "tokens in a window; each starts from an empty state, and a rest is left out")
      ->check(countFrom(2))
      ->type_name("N")
      ->capture_default_str();
  sub->footer("The perplexity is exp of the mean loss of tokens 1 to N - 1 of every window.\n"
              "\n"
              "Example:\n"
              "  moec eval model.moeb --ids @eval_tokens.npy --window 512 --json");
}

void CommandLine::addBench() {
  CLI::App *sub =
      app.add_subcommand("bench", "measure the speed of a language model, or of any program");
  addLoading(sub, bench);
  sub->add_option("--prompt-tokens", bench.promptTokens, "length of the prompt")
      ->check(countFrom(1))
      ->type_name("N")
      ->capture_default_str();
  sub->add_option("--new-tokens", bench.newTokens, "tokens to generate")
      ->check(countFrom(1))
      ->type_name("N")
      ->capture_default_str();
  sub->add_option("--repetitions", bench.repetitions,
                  "measured runs, after one that warms up; the median counts")
      ->check(countFrom(1))
      ->type_name("N")
      ->capture_default_str();
  sub->add_option("--dimension", bench.dimensions,
                  "for a program on plain tensors, which runs on random inputs: the value of a "
                  "dimension of its inputs; may be repeated")
      ->check(nameEqualsValue())
      ->type_name("NAME=N ...");
  sub->add_option("--entry", bench.entry, "which program of plain tensors (default: the first)")
      ->type_name("NAME");
  sub->footer("Prints time to first token, time per token, tokens per second, the share of each op "
              "(from a run of its own,\n"
              "with every launch timed) and peak memory. The prompt is made of pseudo-random "
              "tokens, the same each time.\n"
              "\n"
              "Example:\n"
              "  moec bench model.moeb --prompt-tokens 512 --new-tokens 64 --threads 2\n"
              "  moec bench product.moeb --dimension tokens=4096");
}

void CommandLine::addVerify() {
  CLI::App *sub = app.add_subcommand("verify", "compare compiled code with a reference, layer by layer");
  addLoading(sub, verify);
  auto *reference = sub->add_flag("--reference", verify.reference,
                                  "compare with the reference interpreter, on random tokens (the default)");
  sub->add_option("--against", verify.against,
                  "compare with somebody else's results; what the file does not say comes from the interpreter")
      ->excludes(reference)
      ->type_name("FILE.safetensors");
  sub->add_option("--with", verify.with,
                  "compare with code compiled for another device, cpu or cuda[:N], instead of the interpreter, which is slow: for "
                  "layers of true size")
      ->excludes(reference)
      ->check(isDevice())
      ->type_name("DEVICE");
  sub->add_option("--level", verify.level,
                  "smoke: one sequence in one step; samples: 32 sequences of random lengths, in pieces, several in a step; full: "
                  "also token by token, in batches of unequal sizes")
      ->check(CLI::IsMember({"smoke", "samples", "full"}))
      ->type_name("LEVEL")
      ->capture_default_str();
  sub->add_option("--report", verify.report, "write all figures as JSON")->type_name("FILE");
  sub->add_option("--tokens", verify.tokens,
                  "tokens of the longest sequence (default: 12, 48 and 80 by level; with --against, all)")
      ->check(countFrom(1))
      ->type_name("N");
  sub->add_option("--seed", verify.seed, "of tokens, lengths and pieces")
      ->check(countFrom(0))
      ->type_name("N")
      ->capture_default_str();
  const char *inside = "The reference";
  sub->add_option("--reference-program", verify.referenceProgram,
                  "let the interpreter compute this program of phase moe instead of the bundle's")
      ->type_name("FILE.mlir")
      ->group(inside);
  sub->add_option("--reference-weights", verify.referenceWeights,
                  "let the interpreter read weights from this folder, such as the checkpoint, instead of where the bundle reads "
                  "them")
      ->type_name("DIR")
      ->group(inside);
  const char *tolerances = "Tolerances (relative root mean squares)";
  auto tolerance = [&](const char *name, double &value, const char *description) {
    sub->add_option(name, value, description)
        ->check(numberBetween(0, 1e6, true, "of at least 0"))
        ->type_name("X")
        ->capture_default_str()
        ->group(tolerances);
  };
  tolerance("--tolerance-f32", verify.toleranceF32, "of a layer, or of an op, in f32");
  tolerance("--tolerance-logits", verify.toleranceLogits, "of the logits from end to end in f32");
  tolerance("--tolerance-bf16", verify.toleranceBF16, "of one rounding to bf16; n roundings in a row have sqrt(n) of it");
  tolerance("--tolerance-f16", verify.toleranceF16, "of one rounding to f16; the same");
  sub->footer(
      "Each layer is compiled by itself for the bundle's target and gets the reference's inputs, so that errors do\n"
      "not pile up; then the bundle's own code is compared from end to end. The first layer that differs is named,\n"
      "and in it the first op. Exit code 1: something differs.\n"
      "\n"
      "A file for --against holds 'tokens' (i32 [T]) and 'logits' ([T, V]) or 'logits_lastN' ([N, V]), and, if\n"
      "you have them, 'embedding' and 'layers.N' ([T, hidden], the residual stream after layer N, counted from 0)\n"
      "or 'hidden.N' (as transformers' hidden_states); for several sequences 'NAME.tokens', 'NAME.logits' ...\n"
      "\n"
      "Examples:\n"
      "  moec verify model.moeb\n"
      "  moec verify model.moeb --level full --report report.json\n"
      "  moec verify model.moeb --against reference.safetensors --level samples\n"
      "  moec verify model.moeb --device cuda --with cpu\n"
      "  moec verify copied.moeb --reference-weights path/to/checkpoint");
}

void CommandLine::addInspect() {
  CLI::App *sub =
      app.add_subcommand("inspect", "show what a bundle holds, without loading its code");
  sub->add_option("bundle", inspect.bundle, "a bundle that 'moec compile' wrote")
      ->required()
      ->type_name("BUNDLE");
  sub->add_option("--weights", inspect.weights, "look for referenced weight files in this folder")
      ->type_name("DIR");
  sub->add_flag("--json", inspect.json, "print one JSON object");
  sub->add_flag("--verify", inspect.verify,
                "read every byte of the bundle and of the weights and check the digests");
  sub->add_flag("--commands", inspect.commands, "list the commands and buffers of every program");
  sub->footer("Examples:\n"
              "  moec inspect model.moeb\n"
              "  moec inspect model.moeb --verify --weights /models/gpt-oss-20b");
}

void CommandLine::addTokenize() {
  CLI::App *sub = app.add_subcommand("tokenize", "turn text into token ids, or ids into text");
  sub->add_option("input", tokenize.input,
                  "a bundle, or a folder with tokenizer.json or tiktoken.model")
      ->required()
      ->type_name("INPUT");
  auto *text = sub->add_option("--text", tokenize.text, "the text")->type_name("TEXT");
  auto *files = sub->add_option("--file", tokenize.files,
                                "a file with the text; may be repeated, and each gets a line")
                    ->type_name("FILE");
  auto *ids = sub->add_option("--ids", tokenize.ids, "decode these ids: '5,6,7', or '@file.npy'")
                  ->type_name("IDS");
  text->excludes(files)->excludes(ids);
  files->excludes(ids);
  sub->add_flag("--special", tokenize.special, "print special tokens, too, when decoding");
  sub->add_flag("--timing", tokenize.timing, "print on stderr how long encoding took");
  sub->callback([this, text, files, ids] {
    tokenize.hasText = text->count() > 0;
    if (text->count() + files->count() + ids->count() == 0)
      throw CLI::ValidationError("tokenize", "give --text TEXT, --file FILE or --ids IDS");
  });
  sub->footer("Begin-of-text is not added; texts of special tokens become those tokens.\n"
              "\n"
              "Examples:\n"
              "  moec tokenize model.moeb --text 'And it came to pass'\n"
              "  moec tokenize path/to/checkpoint --ids 5,6,7");
}

} // namespace

int main(int argc, char **argv) {
  try {
    CommandLine line;
    try {
      line.app.parse(argc, argv);
    } catch (const CLI::Success &success) { // --help, --version
      line.app.exit(success, std::cout, std::cerr);
      return static_cast<int>(ExitCode::Success);
    } catch (const CLI::ParseError &error) {
      std::string message = error.what();
      auto commands = line.app.get_subcommands([](const CLI::App *) { return true; });
      bool isKnown = argc < 2 || argv[1][0] == '-';
      for (const CLI::App *command : commands)
        isKnown = isKnown || command->get_name() == argv[1];
      if (!isKnown)
        message = "'" + std::string(argv[1]) +
                  "' is no command; there are compile, run, eval, bench, verify, inspect and "
                  "tokenize";
      std::fprintf(stderr, "moec: error: %s\nRun the command with --help for its options.\n",
                   message.c_str());
      return static_cast<int>(ExitCode::Usage);
    }
    ExitCode code = ExitCode::Usage;
    if (line.app.got_subcommand("compile"))
      code = runCompile(line.compile);
    else if (line.app.got_subcommand("run"))
      code = runRun(line.run);
    else if (line.app.got_subcommand("eval"))
      code = runEval(line.eval);
    else if (line.app.got_subcommand("bench"))
      code = runBench(line.bench);
    else if (line.app.got_subcommand("verify"))
      code = runVerify(line.verify);
    else if (line.app.got_subcommand("inspect"))
      code = runInspect(line.inspect);
    else if (line.app.got_subcommand("tokenize"))
      code = runTokenize(line.tokenize);
    return static_cast<int>(code);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "moec: internal error: %s\n", error.what());
    return static_cast<int>(ExitCode::Internal);
  }
}
