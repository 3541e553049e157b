#include "LinearShape.h"

#include "PartialSums.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <optional>

using namespace mlir::moec;

using Pair = LinearShape::Pair;

int64_t LinearShape::getResultBytes() const {
  constexpr int64_t twoBoxesForEachGroup = 32768;
  if (!sharesK())
    return twoBoxesForEachGroup;
  return PartialSums::getBytes(columns, groupsShareK() ? 2 : 1, pair == Pair::SharesK ? 2 : 1);
}

int64_t LinearShape::getSlots() const {
  return std::min(mostSlots, (sharedBytes - getResultBytes()) / getSlotBytes());
}

int64_t LinearShape::countSteps(int64_t elements) const {
  return llvm::divideCeil(elements, depth * boxes);
}

int64_t LinearShape::countColumnTiles(int64_t allColumns) const {
  return llvm::divideCeil(allColumns, columns);
}

int64_t LinearShape::countRowTiles(int64_t allRows) const {
  if (pair == Pair::SharesWeight)
    return 2 * llvm::divideCeil(allRows, 2 * rows);
  return llvm::divideCeil(allRows, rows);
}

int64_t LinearShape::getCost(int64_t elements) const {
  // As measured on an H200, in units of 2.3 ns: what a step of k takes for each column where the
  // products limit it. Narrow tiles are limited by what the second cache gives, and blocks that share
  // k get less from it, as neighbours read different things.
  constexpr int64_t ofTile = 430, ofExchange = 430;
  int64_t steps = llvm::divideCeil(elements, depth);
  int64_t ofStep = std::max(columns + 24, columns / 2 + 60);
  if (pair == Pair::SharesWeight)
    ofStep -= 16; // less power, with which large products are short of
  if (pair == Pair::SharesK)
    return ofStep * 2 / 3 * steps + ofTile + ofExchange;
  return ofStep * steps + ofTile;
}

/// The same for a launch with so many rows; none where there are too many tiles.
static std::optional<int64_t> getCost(const LinearShape &shape, int64_t rows, int64_t columns,
                                      int64_t elements) {
  constexpr int64_t ofLaunch = 3400;
  int64_t tiles = shape.countRowTiles(rows) * shape.countColumnTiles(columns);
  if (shape.pair == Pair::SharesK && tiles > LinearShape::pairs)
    return std::nullopt;
  return llvm::divideCeil(tiles, LinearShape::blocks) * shape.getCost(elements) + ofLaunch;
}

/// For up to 16 and 64 rows. Reading the weight is all that counts, and that no tile is so narrow
/// that its steps take longer than its bytes.
static void addFewRows(std::vector<LinearShape> &shapes, int64_t columns) {
  constexpr int64_t most = 128, ofTile = 8; // in columns
  auto getCost = [&](int64_t width) {
    int64_t rounds = llvm::divideCeil(llvm::divideCeil(columns, width), LinearShape::blocks);
    return rounds * (width + ofTile);
  };
  int64_t best = 8;
  for (int64_t width = 8; width <= most; width += 8)
    if (getCost(width) <= getCost(best))
      best = width;
  for (int64_t rows : {16, 64})
    shapes.push_back({64, best, 2, rows, Pair::Apart, rows});
}

/// For narrow weights, which have too few columns for all multiprocessors. Tiles of a few columns
/// would read the input again and again; instead pairs share k, one tile each.
static void addNarrow(std::vector<LinearShape> &shapes, int64_t columns) {
  constexpr int64_t rows = 64, most = 64;
  for (int64_t mostRows : {16, 64, 128, 256}) {
    int64_t rowTiles = llvm::divideCeil(mostRows, rows), width = 8;
    while (rowTiles * llvm::divideCeil(columns, width) > LinearShape::pairs)
      width += 8;
    if (width > most)
      break;
    // Narrow boxes go by twos, so that a warpgroup multiplies for longer than it waits.
    int64_t boxes = width <= 32 ? 4 : 2;
    shapes.push_back({rows, width, boxes, std::min(rows, mostRows), Pair::SharesK, mostRows});
  }
}

/// For more rows. Beside the widest tiles the kernel has some that do better where the last round of
/// those would leave multiprocessors without work: those that save most for some numbers of rows.
static void addManyRows(std::vector<LinearShape> &shapes, int64_t columns, int64_t elements,
                        bool isInvariant) {
  constexpr int64_t rows = 128, widest = 256, widestShared = 128, narrowest = 32, step = 16,
                    mostShapes = 7;
  constexpr double leastSaving = 0.006;
  auto makeShape = [&](int64_t width, Pair pair) {
    return LinearShape{rows, width, 1, rows, pair, 0};
  };
  std::vector<LinearShape> candidates;
  for (int64_t width = narrowest; width <= widest; width += step) {
    candidates.push_back(makeShape(width, Pair::Apart));
    if (width <= widestShared && !isInvariant)
      candidates.push_back(makeShape(width, Pair::SharesK));
  }
  std::vector<LinearShape> chosen = {makeShape(widest, Pair::SharesWeight)};
  std::vector<std::pair<int64_t, int64_t>> leastCosts; // for numbers of rows
  int64_t covered = shapes.empty() ? 0 : shapes.back().mostRows;
  for (int64_t rowTiles : {1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64})
    if (rowTiles * rows > covered)
      leastCosts.push_back(
          {rowTiles * rows, *getCost(chosen[0], rowTiles * rows, columns, elements)});
  while (chosen.size() < mostShapes) {
    auto getSaving = [&](const LinearShape &shape) {
      double saving = 0;
      for (auto [rows, least] : leastCosts)
        if (auto cost = getCost(shape, rows, columns, elements); cost && *cost < least)
          saving += 1 - double(*cost) / double(least);
      return saving / double(leastCosts.size());
    };
    const LinearShape &best = *llvm::max_element(candidates, [&](const auto &a, const auto &b) {
      return getSaving(a) < getSaving(b);
    });
    if (getSaving(best) < leastSaving)
      break;
    chosen.push_back(best);
    for (auto &[rows, least] : leastCosts)
      if (auto cost = getCost(best, rows, columns, elements))
        least = std::min(least, *cost);
  }
  llvm::append_range(shapes, chosen);
}

std::vector<LinearShape> mlir::moec::getLinearShapes(int64_t columns, int64_t elements,
                                                     bool isInvariant) {
  constexpr int64_t narrow = 64, fewestElements = 1024;
  std::vector<LinearShape> shapes;
  if (!isInvariant) {
    if (columns <= narrow * LinearShape::pairs && elements >= fewestElements)
      addNarrow(shapes, columns);
    else
      addFewRows(shapes, columns);
  }
  addManyRows(shapes, columns, elements, isInvariant || elements < fewestElements);
  return shapes;
}
