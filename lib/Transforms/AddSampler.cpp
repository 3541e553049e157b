//===- AddSampler.cpp - an entry that chooses tokens where the logits are ---------------------===//
//
// Logits are a vocabulary wide, a token is four bytes: choosing it beside the model's step saves
// bringing the logits to the host.
//
//===------------------------------------------------------------------------------------------===//

#include "moec/Dialect/MoE/IR/MoE.h"
#include "moec/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::moec {
#define GEN_PASS_DEF_ADDSAMPLER
#include "moec/Transforms/Passes.h.inc"

namespace {

constexpr llvm::StringLiteral languageModelAttr = "moe.language_model", samplerAttr = "sampler";

struct AddSamplerPass : impl::AddSamplerBase<AddSamplerPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto language = module->getAttrOfType<DictionaryAttr>(languageModelAttr);
    if (!language || language.contains(samplerAttr))
      return;
    auto vocabulary = language.getAs<IntegerAttr>("vocabulary");
    if (!vocabulary)
      return;
    SymbolTable symbols(module);
    std::string name = "sample";
    for (int number = 1; symbols.lookup(name); ++number)
      name = "sample_" + std::to_string(number);
    build(module, name, vocabulary.getInt());
    NamedAttrList named(language);
    named.set(samplerAttr, StringAttr::get(&getContext(), name));
    module->setAttr(languageModelAttr, named.getDictionary(&getContext()));
  }

private:
  static void build(ModuleOp module, StringRef name, int64_t vocabulary) {
    Location loc = NameLoc::get(StringAttr::get(module.getContext(), "sample"));
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    auto function = func::FuncOp::create(builder, loc, name, builder.getFunctionType({}, {}));
    Block *body = function.addEntryBlock();
    builder.setInsertionPointToStart(body);

    SmallVector<Attribute> attributes;
    auto argument = [&](StringRef name, StringRef rows, RankedTensorType type) {
      attributes.push_back(builder.getDictionaryAttr(
          {builder.getNamedAttr("moe.name", builder.getStringAttr(name)),
           builder.getNamedAttr("moe.dims", builder.getStrArrayAttr({rows}))}));
      return body->addArgument(type, loc);
    };
    auto list = [](Type element) { return RankedTensorType::get({ShapedType::kDynamic}, element); };
    RankedTensorType integers = list(builder.getI32Type());
    auto logitsType =
        RankedTensorType::get({ShapedType::kDynamic, vocabulary}, builder.getF32Type());
    Value logits = argument("logits", "rows", logitsType);
    Value rows = argument("rows", "samples", integers);
    Value temperature = argument("temperature", "samples", list(builder.getF32Type()));
    Value topK = argument("top_k", "samples", integers);
    Value topP = argument("top_p", "samples", list(builder.getF64Type()));
    Value random = argument("random", "samples", list(builder.getF64Type()));
    Value tokens = moe::SampleOp::create(builder, loc, integers, logits, rows, temperature, topK,
                                         topP, random);
    func::ReturnOp::create(builder, loc, tokens);
    function.setFunctionType(
        builder.getFunctionType(body->getArgumentTypes(), TypeRange(integers)));
    function.setArgAttrsAttr(builder.getArrayAttr(attributes));
    function.setResultAttr(0, "moe.name", builder.getStringAttr("tokens"));
    function->setAttr("moe.entry", builder.getUnitAttr());
  }
};

} // namespace
} // namespace mlir::moec
