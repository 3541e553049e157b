// All ops of the moe dialect.
#ifndef MOEC_DIALECT_MOE_IR_MOEOPS_TD
#define MOEC_DIALECT_MOE_IR_MOEOPS_TD

include "moec/Dialect/MoE/IR/WeightOps.td"
include "moec/Dialect/MoE/IR/LinearOps.td"
include "moec/Dialect/MoE/IR/NormOps.td"
include "moec/Dialect/MoE/IR/AttentionOps.td"
include "moec/Dialect/MoE/IR/RecurrentOps.td"
include "moec/Dialect/MoE/IR/ResidualOps.td"
include "moec/Dialect/MoE/IR/RoutingOps.td"
include "moec/Dialect/MoE/IR/ExpertOps.td"
include "moec/Dialect/MoE/IR/SamplingOps.td"
include "moec/Dialect/MoE/IR/HyperConnectionOps.td"
include "moec/Dialect/MoE/IR/CompressionOps.td"
include "moec/Dialect/MoE/IR/VisionOps.td"

#endif
