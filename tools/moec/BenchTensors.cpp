#include "tools/moec/BenchTensors.h"

#include "tools/moec/Report.h"

#include "runtime/base/ElementType.h"
#include "runtime/bundle/Expression.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <random>

namespace moec {

using moert::ProfileEntry;
using moert::Result;
using moert::Status;
using moert::Tensor;

namespace {

// The values of an entry's symbols from NAME=N; every symbol must have one.
Result<std::vector<std::int64_t>> readSymbols(const moec::bundle::Program &entry,
                                              const std::vector<std::string> &texts) {
  std::map<std::string, std::int64_t> given;
  for (const std::string &text : texts) {
    std::size_t equals = text.rfind('=');
    char *end = nullptr;
    long long value = std::strtoll(text.c_str() + equals + 1, &end, 10);
    if (*end || value < 0)
      return Status(moert::ErrorCode::InvalidArgument, "expected NAME=N, found '" + text + "'",
                    "--dimension");
    given[text.substr(0, equals)] = value;
  }
  std::vector<std::int64_t> values;
  moert::Problems problems("entry " + moert::inQuotes(entry.name()));
  for (const std::string &symbol : entry.symbols()) {
    auto found = given.find(symbol);
    if (found == given.end())
      problems.add("the dimension " + moert::inQuotes(symbol) +
                   " has no value; give one with --dimension " + symbol + "=N");
    else
      values.push_back(found->second);
  }
  MOERT_RETURN_IF_ERROR(problems.toStatus(moert::ErrorCode::InvalidArgument));
  return values;
}

// Numbers about 1 for floats, so that no speed depends on zeros; small ones for integers.
void fill(Tensor &tensor, std::mt19937 &random) {
  std::normal_distribution<float> normal;
  auto each = [&](auto element, auto make) {
    using Element = decltype(element);
    auto *data = reinterpret_cast<Element *>(tensor.data.data());
    for (std::size_t i = 0; i < tensor.data.size() / sizeof(Element); ++i)
      data[i] = make();
  };
  auto bits = [&](float value) {
    std::uint32_t word;
    std::memcpy(&word, &value, sizeof word);
    return word;
  };
  switch (tensor.type) {
  case moert::ElementType::F32:
    return each(float{}, [&] { return normal(random); });
  case moert::ElementType::BF16:
    return each(std::uint16_t{},
                [&] { return static_cast<std::uint16_t>(bits(normal(random)) >> 16); });
  case moert::ElementType::F16: // sign, exponents of 0.25 to 2, any fraction
    return each(std::uint16_t{}, [&] {
      return static_cast<std::uint16_t>((random() & 0x83ff) | (13 + random() % 3) << 10);
    });
  default:
    return; // integers: zeros
  }
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ptrdiff_t(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

} // namespace

ExitCode benchTensors(const moert::Model &model, const BenchCommand &command) {
  const moec::bundle::Program *entry = nullptr;
  for (const moec::bundle::Variant &variant : model.bundle().manifest().variants())
    if (variant.target() == model.variant())
      for (const moec::bundle::Program &program : variant.entries())
        if (command.entry.empty() || program.name() == command.entry)
          entry = entry ? entry : &program;
  if (!entry)
    return failInput("the bundle has no program " + moert::inQuotes(command.entry));
  MOEC_ASSIGN_OR_FAIL(std::vector<std::int64_t> symbols, readSymbols(*entry, command.dimensions));
  std::mt19937 random(1);
  std::map<std::string, Tensor> inputs;
  for (const moec::bundle::Tensor &input : entry->inputs()) {
    Tensor tensor;
    tensor.type = moert::elementType(input.type());
    for (const moec::bundle::Expression &size : input.shape())
      tensor.shape.push_back(moert::SizeExpression(size).evaluate(symbols).value_or(-1));
    auto bytes = moert::tensorBytes(tensor.type, tensor.shape);
    if (!bytes)
      return failInput("input " + moert::inQuotes(input.name()) + " is too large");
    tensor.data.resize(*bytes);
    fill(tensor, random);
    inputs[input.name()] = std::move(tensor);
  }

  std::vector<std::vector<double>> seconds;
  std::vector<double> together;
  moert::RunProfile measured;
  const std::vector<ProfileEntry> &profile = measured.launches;
  for (std::uint64_t run = 0; run <= command.repetitions; ++run) {
    MOEC_ASSIGN_OR_FAIL(auto outputs, model.run(entry->name(), inputs, &measured));
    if (run > 0)
      together.push_back(measured.seconds);
    seconds.resize(profile.size());
    for (std::size_t i = 0; run > 0 && i < profile.size(); ++i)
      seconds[i].push_back(profile[i].seconds);
  }
  nlohmann::ordered_json launches = nlohmann::ordered_json::array();
  if (!command.json)
    std::printf("target %s, medians of %llu runs\n  %10s  %9s  %9s  %s\n", model.variant().c_str(),
                static_cast<unsigned long long>(command.repetitions), "time", "GFLOP/s", "GB/s",
                "kernel");
  for (std::size_t i = 0; i < profile.size(); ++i) {
    double time = median(seconds[i]);
    double flops = profile[i].flops / time, bytes = profile[i].bytesMoved / time;
    launches.push_back({{"kernel", profile[i].kernel},
                        {"op", profile[i].source},
                        {"seconds", time},
                        {"flops_per_s", flops},
                        {"bytes_per_s", bytes}});
    if (!command.json)
      std::printf("  %10s  %9s  %9s  %s\n", secondsToString(time).c_str(),
                  flops > 0 ? numberToString(flops / 1e9, 1).c_str() : "-",
                  bytes > 0 ? numberToString(bytes / 1e9, 1).c_str() : "-",
                  profile[i].kernel.c_str());
  }
  if (command.json)
    printJson({{"target", model.variant()}, {"seconds", median(together)}, {"launches", launches}});
  else
    std::printf("  %10s  all of them in one go\n", secondsToString(median(together)).c_str());
  return ExitCode::Success;
}

} // namespace moec
