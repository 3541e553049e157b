// Command lists on a GPU: queued, timed, or recorded as CUDA graphs.
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/cuda/CudaKernels.h"

#include <cassert>

namespace moert::cuda {

namespace {

class Graph final : public Device::Recording {
public:
  Graph(std::shared_ptr<const Context> context, CUgraphExec graph, std::uint64_t scratchMoves)
      : context(std::move(context)), graph(graph), scratchMoves(scratchMoves) {}
  ~Graph() override {
    Context::Scope scope(*context);
    (void)context->driver.cuStreamSynchronize(context->compute);
    (void)context->driver.cuGraphExecDestroy(graph);
  }

  const std::shared_ptr<const Context> context;
  const CUgraphExec graph;
  const std::uint64_t scratchMoves; // how often the scratch space had moved when it was recorded
};

} // namespace

Status CudaDevice::reserveScratch(std::uint64_t bytes) {
  if (bytes <= scratch.size())
    return {};
  scratch.release();
  ++scratchMoves;
  MOERT_ASSIGN_OR_RETURN(scratch, context->allocate(bytes, "the scratch space of a kernel"));
  return {};
}

Status CudaDevice::reserveEvents(std::size_t count) {
  while (events.size() < count) {
    CUevent event = nullptr;
    MOERT_CUDA_RETURN_IF_ERROR(driver, cuEventCreate(&event, eventDefault));
    events.push_back(event);
  }
  return {};
}

CUresult CudaDevice::launch(const ReadyCommand &command, CUstream stream) {
  const Kernel &kernel = *static_cast<const Kernel *>(command.kernel);
  // The driver reads each parameter from where its pointer says.
  std::byte *scratchAddress = scratch.data();
  parameters.clear();
  for (std::uint32_t i = 0; i < command.parameters.bindings; ++i)
    parameters.push_back(const_cast<void **>(command.arguments.buffers + i));
  for (std::uint32_t i = 0; i < command.parameters.dimensions; ++i)
    parameters.push_back(const_cast<std::int64_t *>(command.arguments.dimensions + i));
  if (command.parameters.hasScratch)
    parameters.push_back(&scratchAddress);
  for (std::uint32_t i = 0; i < command.parameters.tensorMaps; ++i)
    parameters.push_back(const_cast<EncodedTensorMap *>(command.tensorMaps + i));
  const LaunchShape &shape = command.shape;
  if (!shape.overlap)
    return driver.cuLaunchKernel(kernel.function, command.workgroups, 1, 1, shape.threads, 1, 1,
                                 shape.sharedBytes, stream, parameters.data(), nullptr);
  CUlaunchAttribute attribute = {};
  attribute.id = launchOverlap;
  attribute.value.flag = 1;
  CUlaunchConfig config = {command.workgroups, 1, 1, shape.threads, 1, 1, shape.sharedBytes, stream,
                           &attribute,         1};
  return driver.cuLaunchKernelEx(&config, kernel.function, parameters.data(), nullptr);
}

Status CudaDevice::enqueue(const ReadyCommand &command, CUstream stream) {
  CUresult result =
      command.kernel
          ? launch(command, stream)
          : driver.cuMemcpyDtoDAsync_v2(reinterpret_cast<CUdeviceptr>(command.arguments.buffers[1]),
                                        reinterpret_cast<CUdeviceptr>(command.arguments.buffers[0]),
                                        command.bytes, stream);
  const char *call = command.kernel ? "cuLaunchKernel" : "cuMemcpyDtoDAsync";
  if (result == CUDA_SUCCESS && waitForEach) {
    call = "cuStreamSynchronize";
    result = driver.cuStreamSynchronize(stream);
  }
  if (result == CUDA_SUCCESS)
    return {};
  return driver.toStatus(result, call)
      .in(name() + ": command " + std::to_string(command.command) +
          (command.kernel ? " " + inQuotes(static_cast<const Kernel *>(command.kernel)->name)
                          : " (a copy)"));
}

Status CudaDevice::uploadInputs(const CommandList &list, CUstream stream) {
  const Transfer &upload = list.upload;
  if (upload.bytes != 0)
    MOERT_CUDA_RETURN_IF_ERROR(
        driver, cuMemcpyHtoDAsync_v2(toPointer(upload.device), upload.host, upload.bytes, stream));
  return {};
}

Status CudaDevice::downloadOutputs(const CommandList &list, CUstream stream) {
  const Transfer &download = list.download;
  if (download.bytes != 0)
    MOERT_CUDA_RETURN_IF_ERROR(
        driver,
        cuMemcpyDtoHAsync_v2(download.host, toPointer(download.device), download.bytes, stream));
  return {};
}

Status CudaDevice::enqueue(const CommandList &list, CUstream stream) {
  MOERT_RETURN_IF_ERROR(uploadInputs(list, stream));
  for (const ReadyCommand &command : list.commands)
    MOERT_RETURN_IF_ERROR(enqueue(command, stream));
  return downloadOutputs(list, stream);
}

Status CudaDevice::run(const CommandList &list) {
  std::lock_guard lock(mutex);
  Context::Scope scope(*context);
  MOERT_RETURN_IF_ERROR(reserveScratch(list.scratchBytes));
  return enqueue(list, context->compute);
}

// Without it the first commands would wait for the host to send them, and their times would be the
// host's. Caches hold nothing of a model afterwards, as in a model of some size, and little that is
// still to be written: writing it back would cost the first commands time.
Status CudaDevice::keepBusy(std::size_t commands) {
  constexpr std::uint64_t read = std::uint64_t(1) << 28; // more than any cache
  constexpr std::uint64_t piece = std::uint64_t(1) << 22;
  constexpr std::size_t commandsMeanwhile = 16; // while all pieces are copied, some 150 us
  if (busyWork.size() == 0) {
    Result<DeviceMemory> memory = context->allocate(read + piece, "keeping the GPU busy");
    if (!memory.isOk())
      return {}; // a full GPU is measured as it is
    busyWork = *std::move(memory);
    MOERT_CUDA_RETURN_IF_ERROR(
        driver, cuMemsetD8Async(toPointer(busyWork.data()), 0, busyWork.size(), context->compute));
  }
  CUdeviceptr written = toPointer(busyWork.data() + read);
  for (std::size_t i = 0; i <= commands; i += commandsMeanwhile)
    for (std::uint64_t at = 0; at < read; at += piece)
      MOERT_CUDA_RETURN_IF_ERROR(
          driver, cuMemcpyDtoDAsync_v2(written, toPointer(busyWork.data() + at), piece,
                                       context->compute));
  // Something that multiprocessors do: the way to them from the copy engines takes some microseconds.
  constexpr std::uint64_t few = 4096;
  MOERT_CUDA_RETURN_IF_ERROR(driver, cuMemsetD8Async(written, 0, few, context->compute));
  return {};
}

Status CudaDevice::runProfiled(const CommandList &list, std::span<CommandTime> times) {
  std::lock_guard lock(mutex);
  Context::Scope scope(*context);
  std::size_t count = list.commands.size();
  MOERT_RETURN_IF_ERROR(reserveScratch(list.scratchBytes));
  MOERT_RETURN_IF_ERROR(reserveEvents(count + 1));
  MOERT_RETURN_IF_ERROR(uploadInputs(list, context->compute));
  MOERT_RETURN_IF_ERROR(keepBusy(count));
  MOERT_CUDA_RETURN_IF_ERROR(driver, cuEventRecord(events[0], context->compute));
  for (std::size_t i = 0; i < count; ++i) {
    MOERT_RETURN_IF_ERROR(enqueue(list.commands[i], context->compute));
    MOERT_CUDA_RETURN_IF_ERROR(driver, cuEventRecord(events[i + 1], context->compute));
  }
  MOERT_RETURN_IF_ERROR(downloadOutputs(list, context->compute));
  MOERT_RETURN_IF_ERROR(wait());
  // Each against its neighbour: the difference of two long times would lose digits.
  double begin = 0;
  for (std::size_t i = 0; i < count; ++i) {
    float milliseconds = 0;
    MOERT_CUDA_RETURN_IF_ERROR(driver, cuEventElapsedTime(&milliseconds, events[i], events[i + 1]));
    times[i] = {begin, static_cast<double>(milliseconds) * 1e-3};
    begin += times[i].seconds;
  }
  return {};
}

Result<double> CudaDevice::runTimed(const CommandList &list) {
  std::lock_guard lock(mutex);
  Context::Scope scope(*context);
  MOERT_RETURN_IF_ERROR(reserveScratch(list.scratchBytes));
  MOERT_RETURN_IF_ERROR(reserveEvents(2));
  MOERT_RETURN_IF_ERROR(uploadInputs(list, context->compute));
  MOERT_RETURN_IF_ERROR(keepBusy(list.commands.size()));
  MOERT_CUDA_RETURN_IF_ERROR(driver, cuEventRecord(events[0], context->compute));
  for (const ReadyCommand &command : list.commands)
    MOERT_RETURN_IF_ERROR(enqueue(command, context->compute));
  MOERT_CUDA_RETURN_IF_ERROR(driver, cuEventRecord(events[1], context->compute));
  MOERT_RETURN_IF_ERROR(downloadOutputs(list, context->compute));
  MOERT_RETURN_IF_ERROR(wait());
  float milliseconds = 0;
  MOERT_CUDA_RETURN_IF_ERROR(driver, cuEventElapsedTime(&milliseconds, events[0], events[1]));
  return static_cast<double>(milliseconds) * 1e-3;
}

Result<std::unique_ptr<Device::Recording>> CudaDevice::record(const CommandList &list) {
  if (waitForEach)
    return std::unique_ptr<Recording>();
  std::lock_guard lock(mutex);
  Context::Scope scope(*context);
  MOERT_RETURN_IF_ERROR(reserveScratch(list.scratchBytes));
  // On a stream of its own, so that nobody else's work gets into it.
  MOERT_CUDA_RETURN_IF_ERROR(driver,
                             cuStreamBeginCapture_v2(context->recording, captureThreadLocal));
  Status status = enqueue(list, context->recording);
  CUgraph graph = nullptr;
  CUresult result = driver.cuStreamEndCapture(context->recording, &graph);
  CUgraphExec executable = nullptr;
  if (status.isOk() && result == CUDA_SUCCESS)
    result = driver.cuGraphInstantiateWithFlags(&executable, graph, 0);
  if (graph)
    (void)driver.cuGraphDestroy(graph);
  MOERT_RETURN_IF_ERROR(std::move(status));
  if (result == CUDA_ERROR_OUT_OF_MEMORY) // run() still has what it needs
    return std::unique_ptr<Recording>();
  if (result != CUDA_SUCCESS)
    return driver.toStatus(result, "recording a CUDA graph").in(name());
  return std::unique_ptr<Recording>(std::make_unique<Graph>(context, executable, scratchMoves));
}

Result<bool> CudaDevice::replay(const Recording &recording) {
  const Graph &graph = static_cast<const Graph &>(recording);
  assert(graph.context == context);
  std::lock_guard lock(mutex);
  if (graph.scratchMoves != scratchMoves)
    return false;
  Context::Scope scope(*context);
  MOERT_CUDA_RETURN_IF_ERROR(driver, cuGraphLaunch(graph.graph, context->compute));
  return true;
}

} // namespace moert::cuda
