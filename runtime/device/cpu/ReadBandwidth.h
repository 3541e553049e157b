// How fast this machine's memory can be read: what decoding, which reads every active weight once a
// token, is measured against.
#ifndef MOERT_DEVICE_CPU_READBANDWIDTH_H
#define MOERT_DEVICE_CPU_READBANDWIDTH_H

#include "runtime/device/cpu/ThreadPool.h"

namespace moert {

// Bytes a second that the pool's threads read together from an array of 512 MiB, the best of a few
// passes over half a second; 0 when there is no memory for it.
double measureReadBandwidth(ThreadPool &pool);

} // namespace moert

#endif // MOERT_DEVICE_CPU_READBANDWIDTH_H
