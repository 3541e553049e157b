//===- AttentionMatcher.h - masked attention over past and present, by formula
//-----------------------===//

#ifndef MOEC_TRANSFORMS_RAISE_ATTENTIONMATCHER_H
#define MOEC_TRANSFORMS_RAISE_ATTENTIONMATCHER_H

#include "Matching.h"

namespace mlir::moec {

/// Keys or values: a past, followed by what the step adds.
struct CacheRead {
  tensor::ConcatOp concat; // of the past (an argument) and the new rows
  BlockArgument past;
  const Expression *rows = nullptr; // new rows at (token, head, channel)
  AffineExpr token, head, channel;  // no head: there is one
  int64_t heads = 0, channels = 0;
};

struct AttentionMatch {
  Value result; // [heads, tokens, channels]
  const Expression *query = nullptr;
  AffineExpr token, head, depth, channel; // variables of query (token, head, depth) and result
  int64_t heads = 0;
  CacheRead keys, values;
  const Expression *sinks = nullptr; // at (head); null without
  double scale = 1, softcap = 0;
  int64_t window = 0; // 0: none
};

/// Recognises the output of an attention:
///
///   result[h, t, c] = sum_j softmax_j(scale * q[t, h, :] . k[j, h / group, :] + mask[t, j];
///   sinks[h]) v[j, h / group, c]
///
/// where j runs over a past of P rows and the step's rows, and the mask is 0 for j <= P + t (and j
/// > P + t - window), else a large negative number. P + t may be spelled as the position of token
/// t. When the formula is a softmax of such products but something is different, `why` says what.
std::optional<AttentionMatch> matchAttention(ElementEvaluator &evaluator, Value result,
                                             BlockArgument positions, std::string &why);

} // namespace mlir::moec

#endif
