#include "tools/moec/verify/Program.h"

#include "moec/Dialect/MoE/IR/MoE.h"

#include "mlir/Parser/Parser.h"

#include <filesystem>

namespace moec::verify {

using namespace mlir;
using mlir::moec::moe::WeightRefAttr;
using moert::ErrorCode;
using moert::Result;
using moert::Status;

std::string toText(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

// References to the files where the bundle finds its weights, from "/" on.
static void redirect(ModuleOp module, const moert::Bundle &bundle) {
  const auto &weights = bundle.manifest().weights();
  llvm::StringMap<SmallVector<int>> indices;
  for (int i = 0; i < weights.size(); ++i)
    indices[weights[i].name()].push_back(i);
  auto fromRoot = [](const std::string &path) {
    std::error_code ignored;
    return std::filesystem::absolute(path, ignored).lexically_normal().relative_path().string();
  };
  auto root = module->getAttrOfType<StringAttr>("moe.weight_root");
  auto find = [&](StringRef name, WeightRefAttr ref) {
    for (int index : indices.lookup(name))
      if (weights[index].bytes() == ref.getBytes())
        return WeightRefAttr::get(ref.getContext(),
                                  fromRoot(bundle.weightFilePath(weights[index].file())),
                                  weights[index].offset(), ref.getBytes());
    // What no kernel reads is not in the manifest: it stays where the model was.
    std::string path = moert::joinPath(root ? root.str() : ".", ref.getFile().str());
    return WeightRefAttr::get(ref.getContext(), fromRoot(path), ref.getOffset(), ref.getBytes());
  };
  module.walk([&](mlir::moec::moe::WeightOp op) {
    SmallVector<Attribute> refs;
    for (auto [name, ref] : op.getParts())
      refs.push_back(find(name, ref));
    op.setRefAttr(cast<WeightRefAttr>(refs.front()));
    if (op.getMoreRefs())
      op.setMoreRefsAttr(ArrayAttr::get(op.getContext(), ArrayRef(refs).drop_front()));
  });
  module->setAttr("moe.weight_root", StringAttr::get(module.getContext(), "/"));
}

Result<Program> openProgram(const std::string &text, const std::string &place,
                            const moert::Bundle &bundle, const std::string &weightFolder,
                            MLIRContext &context, DiagnosticStatus &diagnostics) {
  Program program;
  program.module = parseSourceString<ModuleOp>(text, ParserConfig(&context));
  if (!program.module)
    return diagnostics.take(place, "cannot be read");
  const std::string &entry = bundle.manifest().language_model().entry();
  program.step = SymbolTable(*program.module).lookup<func::FuncOp>(entry);
  if (!program.step)
    return Status(ErrorCode::InvalidData,
                  "expected the model's step, a function called " + moert::inQuotes(entry), place,
                  "compile the model again");
  std::string folder = weightFolder;
  if (folder.empty()) {
    redirect(*program.module, bundle);
    folder = "/";
  }
  std::string problem;
  auto weights = mlir::moec::moe::openWeightFolder(folder, /*followLinks=*/true, problem);
  if (failed(weights))
    return Status(ErrorCode::NotFound, problem, folder);
  program.weights = std::move(*weights);
  auto cut = mlir::moec::Segmentation::create(program.step);
  if (failed(cut))
    return diagnostics.take(place, "cannot be cut into layers");
  program.cut = std::move(*cut);
  return program;
}

Status checkAlike(const Program &compiled, const Program &reference, const std::string &place) {
  moert::Problems problems(place);
  func::FuncOp left = compiled.step, right = reference.step;
  if (left.getArgumentTypes() != right.getArgumentTypes())
    problems.add("the step takes other arguments than the bundle's");
  const auto &a = compiled.segments(), &b = reference.segments();
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    if (i >= a.size() || i >= b.size() || a[i].name != b[i].name) {
      problems.add("expected " + (i < a.size() ? a[i].name : std::string("the end")) +
                   " as the bundle's program has it, found " +
                   (i < b.size() ? b[i].name : std::string("the end")));
      break;
    }
    auto describe = [](const mlir::moec::Segment &segment) {
      std::string text;
      for (Value value : segment.results)
        text += (text.empty() ? "" : ", ") + toText(value.getType());
      return text;
    };
    if (describe(a[i]) != describe(b[i]))
      problems.add(a[i].name + ": expected results " + describe(a[i]) + ", found " +
                   describe(b[i]));
    if (a[i].choices.size() != b[i].choices.size())
      problems.add(a[i].name + ": expected " + std::to_string(a[i].choices.size()) +
                   " routers, found " + std::to_string(b[i].choices.size()));
  }
  return problems.toStatus(ErrorCode::InvalidData,
                           "the interpreter's program must have the bundle's layers, with the same "
                           "values between them; make it "
                           "from the same model: moec compile MODEL --to moe -o program.mlir");
}

} // namespace moec::verify
