//===- ProductKernel.h - what kernels of linear and grouped_linear share ----------------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_PRODUCTKERNEL_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_PRODUCTKERNEL_H

#include "IntegerProduct.h"
#include "OutputRows.h"
#include "PackedRows.h"
#include "TileProduct.h"

namespace mlir::moec {

/// Whether the kernels can multiply with a weight of this type; with `useTiles` only where the
/// matrix unit helps and the bits of a token may depend on the number of tokens.
bool isProductSupported(Type weight, const TargetDescription &target, bool useTiles);

/// The products of some rows of an activation with one chunk of a weight's rows, written to the
/// result. Rows are taken in blocks that fit the caches; with the matrix unit, large blocks go
/// there.
class ProductKernel {
public:
  struct Problem {
    Type weight, input;
    moe::ActivationAttr activation;
    /// How many chunks the rows of one weight are cut into at most.
    int64_t mostChunks;
    bool useTiles;
  };
  ProductKernel(const Problem &problem, const TargetDescription &target);

  /// Tokens of the largest block.
  int64_t getTokenCapacity() const;
  int64_t getChunks() const { return chunks.getCount(); }
  int64_t getColumns() const { return weight.getColumns(); }

  void allocate(ScratchAllocator &allocator, MLIRContext *context);

  /// `storage` is the buffer of the weight, `expert` its index in it or null.
  void attach(CodeBuilder &code, Value storage, Value expert);
  OutputWriter &getWriter() { return writer; }

  /// Where the tokens of a launch come from and go to.
  struct Tokens {
    const RowPacker &packer;
    Value result;
    /// From the index of a token to its row in the input and in the result.
    function_ref<Value(Value)> getInputRow, getResultRow;
  };
  /// Multiplies tokens [first, end).
  void multiply(CodeBuilder &code, const Tokens &tokens, Value first, Value end, Value chunk) const;

private:
  void multiplyVectors(CodeBuilder &code, const Tokens &tokens, Value first, Value count,
                       Value chunk) const;
  void multiplyTiles(CodeBuilder &code, const Tokens &tokens, Value first, Value count,
                     Value chunk) const;
  void multiplyPanels(CodeBuilder &code, const TokenBlock &block, Value chunk) const;
  void pack(CodeBuilder &code, const Tokens &tokens, const RowDestination &destination, Value first,
            Value count) const;
  void write(CodeBuilder &code, const Tokens &tokens, const TokenBlock &block, Value first,
             Value count, Value chunk) const;

  const TargetDescription &target;
  WeightPanels weight;
  RowChunks chunks;
  PanelProduct product;
  std::optional<IntegerProduct> integerProduct;
  std::optional<TileProduct> tileProduct;
  OutputWriter writer;
  Value rows, sums;
};

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_PRODUCTKERNEL_H
