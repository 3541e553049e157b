#include "AttentionReference.h"

#include <algorithm>
#include <numeric>

using namespace moec_test;

std::string RotaryCase::print() const {
  std::string list;
  char number[40];
  for (float frequency : frequencies) {
    snprintf(number, sizeof number, "%s%.9e", list.empty() ? "" : ", ", frequency);
    list += number;
  }
  snprintf(number, sizeof number, "%.17e", magnitude);
  return "#moe.rotary<[" + list + "], magnitude = " + number +
         ", offset = " + std::to_string(offset) + (interleaved ? ", interleaved" : "") + ">";
}

void RotaryCase::apply(std::vector<double> &row, int64_t position) const {
  int64_t pairs = frequencies.size();
  for (int64_t i = 0; i < pairs; ++i) {
    float angle = static_cast<float>(position) * frequencies[i];
    double c = magnitude * std::cos(double(angle)), s = magnitude * std::sin(double(angle));
    double &a = row[offset + (interleaved ? 2 * i : i)];
    double &b = row[offset + (interleaved ? 2 * i + 1 : i + pairs)];
    double first = a * c - b * s, second = b * c + a * s;
    a = first;
    b = second;
  }
}

std::string AttentionCase::getCacheTypeText() const {
  return "!moe.cache<kv_heads = " + std::to_string(kvHeads) +
         ", key_dim = " + std::to_string(keyDim) + ", value_dim = " + std::to_string(valueDim) +
         ", block = " + std::to_string(block) + ", " + cacheType + (shared ? ", shared>" : ">");
}

static std::string number(double value) {
  char text[40];
  snprintf(text, sizeof text, "%.17e", value);
  return text;
}

KernelText AttentionCase::describeAttention(std::string tokens) const {
  auto shape = [&](int64_t heads, int64_t dim) {
    return tokens + "x" + std::to_string(heads) + "x" + std::to_string(dim) + "x" + queryType;
  };
  KernelText text;
  text.inputs = {tensorArgument(shape(heads, keyDim)),
                 {"memref<?x" + std::to_string(getBlockElements()) + "x" + cacheType + ">",
                  getCacheTypeText()},
                 tensorArgument(tokens + "xi32"),
                 tensorArgument(tokens + "xi32"),
                 tensorArgument("?x?xi32")};
  if (sinks)
    text.inputs.push_back(tensorArgument(std::to_string(heads) + "xf32"));
  if (indexWidth)
    text.inputs.push_back(tensorArgument(tokens + "x" + std::to_string(indexWidth) + "xi32"));
  text.outputs = {tensorArgument(shape(heads, valueDim))};
  text.op = "%r0 = moe.attention %0 over %1 at (%2, %3, %4) ";
  if (sinks)
    text.op += "sinks(%5 : " + text.inputs[5].value + ") ";
  if (indexWidth)
    text.op += "indices(%" + std::to_string(text.inputs.size() - 1) + " : " +
               text.inputs.back().value + ") ";
  text.op += "{scale = " + number(scale) + ", window = " + std::to_string(window) +
             ", softcap = " + number(softcap);
  if (!rotary.empty())
    text.op += ", rotary = " + rotary[0].print();
  text.op += ", strategy = \"" + strategy + "\"} : ";
  for (int i = 0; i < 5; ++i)
    text.op += (i ? ", " : "") + text.inputs[i].value;
  text.op += " -> " + text.outputs[0].value;
  return text;
}

KernelText AttentionCase::describeAppend(std::string tokens) const {
  auto shape = [&](int64_t dim) {
    return tokens + "x" + std::to_string(kvHeads) + "x" + std::to_string(dim) + "x" + queryType;
  };
  KernelText text;
  text.inputs = {tensorArgument(shape(keyDim)),
                 tensorArgument(shape(valueDim)),
                 {"memref<?x" + std::to_string(getBlockElements()) + "x" + cacheType + ">",
                  getCacheTypeText()},
                 tensorArgument(tokens + "xi32"),
                 tensorArgument(tokens + "xi32"),
                 tensorArgument("?x?xi32")};
  text.op = "moe.kv_append %0, %1 into %2 at (%3, %4, %5) {strategy = \"cpu.kv_append\"";
  if (!rotary.empty())
    text.op += ", rotary = " + rotary[0].print();
  text.op += "} : ";
  for (int i = 0; i < 6; ++i)
    text.op += (i ? ", " : "") + text.inputs[i].value;
  return text;
}

int64_t moec_test::keyElement(const AttentionCase &shape, int64_t head, int64_t slot, int64_t i) {
  if (shape.shared || shape.strategy.starts_with("cuda."))
    return (head * shape.block + slot) * shape.keyDim + i;
  return (head * shape.keyDim + i) * shape.block + slot;
}

int64_t moec_test::valueElement(const AttentionCase &shape, int64_t head, int64_t slot, int64_t i) {
  if (shape.shared)
    return keyElement(shape, head, slot, i);
  int64_t keys = shape.kvHeads * shape.keyDim * shape.block;
  return keys + (head * shape.block + slot) * shape.valueDim + i;
}

AttentionStep::AttentionStep(const AttentionCase &shape, const std::vector<SequenceCase> &sequences,
                             unsigned shuffleSeed)
    : shape(shape), sequences(sequences), cache(shape.cacheType, 0), query(shape.queryType, 0),
      sinks("f32", shape.heads) {
  layOutBlocks(shuffleSeed);
  for (size_t i = 0; i < sequences.size(); ++i) {
    const SequenceCase &sequence = sequences[i];
    for (int64_t p = sequence.context - sequence.queries; p < sequence.context; ++p) {
      positions.push_back(p);
      tokenSequences.push_back(i);
    }
  }
  query = TestBuffer(shape.queryType, getTokens() * shape.heads * shape.keyDim);
  for (size_t i = 0; i < sequences.size(); ++i)
    fillSequence(i);
  for (int64_t head = 0; head < shape.heads; ++head)
    sinks.set(head, 0.7 * head - 1);
  chooseIndices();
}

/// A token's list has positions in any order, some behind the token, and -1 anywhere.
void AttentionStep::chooseIndices() {
  for (int64_t token = 0; shape.indexWidth && token < getTokens(); ++token) {
    std::mt19937 generator(sequences[tokenSequences[token]].seed * 300007u + positions[token]);
    std::vector<int32_t> all(positions[token] + 3);
    std::iota(all.begin(), all.end(), 0);
    std::shuffle(all.begin(), all.end(), generator);
    all.resize(std::min<size_t>(all.size(), generator() % (shape.indexWidth + 1)));
    all.resize(shape.indexWidth, -1);
    std::shuffle(all.begin(), all.end(), generator);
    indices.insert(indices.end(), all.begin(), all.end());
  }
}

void AttentionStep::layOutBlocks(unsigned seed) {
  int64_t needed = 0;
  for (const SequenceCase &sequence : sequences) {
    int64_t blocks = (sequence.context + shape.block - 1) / shape.block;
    needed += blocks;
    tableBlocks = std::max(tableBlocks, blocks + 1);
  }
  poolBlocks = needed + 3;
  std::vector<int32_t> pool(poolBlocks);
  std::iota(pool.begin(), pool.end(), 0);
  std::shuffle(pool.begin(), pool.end(), std::mt19937(seed));
  int64_t next = 0;
  for (const SequenceCase &sequence : sequences)
    for (int64_t b = 0; b < tableBlocks; ++b) {
      bool used = b * shape.block < sequence.context;
      // Entries behind the end are nothing that may be relied on; some look like any other.
      const int32_t others[] = {-1, 1 << 30, pool[0]};
      blockTable.push_back(used ? pool[next++] : others[(b + blockTable.size()) % 3]);
    }
  cache = TestBuffer(shape.cacheType, poolBlocks * shape.getBlockElements());
}

void AttentionStep::fillSequence(int64_t index) {
  const SequenceCase &sequence = sequences[index];
  std::normal_distribution<double> normal;
  for (int64_t p = 0; p < sequence.context; ++p) {
    std::mt19937 generator(sequence.seed * 100003u + p);
    normal.reset(); // it makes two numbers at a time
    int64_t base = blockElement(index, p);
    for (int64_t head = 0; head < shape.kvHeads; ++head) {
      for (int64_t i = 0; i < shape.keyDim; ++i)
        cache.set(base + keyElement(shape, head, p % shape.block, i), normal(generator));
      for (int64_t i = 0; !shape.shared && i < shape.valueDim; ++i)
        cache.set(base + valueElement(shape, head, p % shape.block, i), normal(generator));
    }
  }
  for (int64_t token = 0; token < getTokens(); ++token) {
    if (tokenSequences[token] != index)
      continue;
    std::mt19937 generator(sequence.seed * 200003u + positions[token]);
    normal.reset();
    int64_t elements = shape.heads * shape.keyDim;
    for (int64_t i = 0; i < elements; ++i)
      query.set(token * elements + i, normal(generator));
  }
}

TestBuffer AttentionStep::makeResult() const {
  return TestBuffer(shape.queryType, getTokens() * shape.heads * shape.valueDim);
}

std::vector<Binding> AttentionStep::getBindings(TestBuffer &result) {
  int64_t tokens = getTokens(), count = sequences.size();
  std::vector<Binding> bindings = {{query.data(), {tokens}},
                                   {cache.data(), {poolBlocks}},
                                   {positions.data(), {tokens}},
                                   {tokenSequences.data(), {tokens}},
                                   {blockTable.data(), {count, tableBlocks}}};
  if (shape.sinks)
    bindings.push_back({sinks.data(), {}});
  if (shape.indexWidth)
    bindings.push_back({indices.data(), {tokens}});
  bindings.push_back({result.data(), {tokens}});
  return bindings;
}

TestBuffer AttentionStep::run(const StrategyKernel &kernel) {
  TestBuffer result = makeResult();
  Unchanged unchanged{&query, &cache, &sinks};
  kernel.run(getTokens(), getBindings(result));
  return result;
}

int64_t AttentionStep::blockElement(int64_t sequence, int64_t position) const {
  return blockTable[sequence * tableBlocks + position / shape.block] * shape.getBlockElements();
}

double AttentionStep::keyAt(int64_t sequence, int64_t position, int64_t head, int64_t i) const {
  return cache.get(blockElement(sequence, position) +
                   keyElement(shape, head, position % shape.block, i));
}

double AttentionStep::valueAt(int64_t sequence, int64_t position, int64_t head, int64_t i) const {
  return cache.get(blockElement(sequence, position) +
                   valueElement(shape, head, position % shape.block, i));
}

void AttentionStep::setToken(int64_t sequence, int64_t position, double key, double value) {
  int64_t base = blockElement(sequence, position);
  for (int64_t head = 0; head < shape.kvHeads; ++head) {
    for (int64_t i = 0; i < shape.keyDim; ++i)
      cache.set(base + keyElement(shape, head, position % shape.block, i), key);
    for (int64_t i = 0; i < shape.valueDim; ++i)
      cache.set(base + valueElement(shape, head, position % shape.block, i), value);
  }
}

bool AttentionStep::sees(int64_t token, int64_t sequence, int64_t position) const {
  int64_t distance = positions[token] - position;
  auto list = indices.begin() + token * shape.indexWidth;
  return tokenSequences[token] == sequence && distance >= 0 &&
         (shape.window == 0 || distance < shape.window) &&
         (shape.indexWidth == 0 ||
          std::find(list, list + shape.indexWidth, position) != list + shape.indexWidth);
}

std::vector<double> AttentionStep::computeRow(int64_t token, int64_t head) const {
  int64_t position = positions[token], sequence = tokenSequences[token];
  int64_t kvHead = head / (shape.heads / shape.kvHeads);
  std::vector<double> row(shape.keyDim), result(shape.valueDim, 0.0);
  std::vector<std::pair<int64_t, double>> scores; // of positions that the token sees
  for (int64_t i = 0; i < shape.keyDim; ++i)
    row[i] = query.get((token * shape.heads + head) * shape.keyDim + i);
  if (!shape.rotary.empty())
    shape.rotary[0].apply(row, position);

  int64_t first = shape.window > 0 ? std::max<int64_t>(0, position - shape.window + 1) : 0;
  double maximum = shape.sinks ? sinks.get(head) : -INFINITY;
  for (int64_t p = first; p <= position; ++p) {
    if (!sees(token, sequence, p))
      continue;
    double score = 0;
    for (int64_t i = 0; i < shape.keyDim; ++i)
      score += row[i] * keyAt(sequence, p, kvHead, i);
    score *= shape.scale;
    if (shape.softcap != 0)
      score = shape.softcap * std::tanh(score / shape.softcap);
    scores.push_back({p, score});
    maximum = std::max(maximum, score);
  }
  double sum = shape.sinks ? std::exp(sinks.get(head) - maximum) : 0;
  for (auto [p, score] : scores) {
    double weight = std::exp(score - maximum);
    sum += weight;
    for (int64_t i = 0; i < shape.valueDim; ++i)
      result[i] += weight * valueAt(sequence, p, kvHead, i);
  }
  for (double &value : result)
    value = sum == 0 ? 0 : value / sum;
  return result;
}

double AttentionStep::compare(const TestBuffer &result) const {
  double worst = 0;
  for (int64_t token = 0; token < getTokens(); ++token)
    for (int64_t head = 0; head < shape.heads; ++head) {
      std::vector<double> expected = computeRow(token, head);
      double largest = 0;
      for (double value : expected)
        largest = std::max(largest, std::abs(value));
      for (int64_t i = 0; i < shape.valueDim; ++i) {
        double actual = result.get((token * shape.heads + head) * shape.valueDim + i);
        // Sums of f32 products relative to the row's size, then one rounding to the result's type.
        double allowed = 5e-6 * largest + result.getEpsilon() * std::abs(expected[i]) + 1e-30;
        double error = std::abs(actual - expected[i]) / allowed;
        worst = error <= worst ? worst : error; // NaN is the worst
      }
    }
  return std::isnan(worst) ? INFINITY : worst;
}

std::vector<std::byte> AttentionStep::getRows(const TestBuffer &result, int64_t sequence) const {
  std::vector<std::byte> rows;
  int64_t rowBytes = shape.heads * shape.valueDim * result.getWidth();
  for (int64_t token = 0; token < getTokens(); ++token)
    if (tokenSequences[token] == sequence)
      rows.insert(rows.end(), result.getBytes().begin() + token * rowBytes,
                  result.getBytes().begin() + (token + 1) * rowBytes);
  return rows;
}
