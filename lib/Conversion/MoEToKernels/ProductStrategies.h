//===- ProductStrategies.h - the strategies of products and of the layouts of their weights ---===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_PRODUCTSTRATEGIES_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_PRODUCTSTRATEGIES_H

#include "moec/Conversion/KernelStrategy.h"

namespace mlir::moec {

const KernelStrategy &getLinearVectorStrategy();
const KernelStrategy &getLinearAMXStrategy();
const KernelStrategy &getGroupedLinearVectorStrategy();
const KernelStrategy &getGroupedLinearAMXStrategy();
const KernelStrategy &getRelayoutBlocksStrategy();
const KernelStrategy &getRelayoutDenseStrategy();

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_PRODUCTSTRATEGIES_H
