// Cards in cuDNN's words, their numbers from the makers' data sheets: plans can be made for them
// where there is none.
#pragma once

namespace crema {

/// sm_90.
constexpr const char* kH200 = R"({"cudaDeviceId":0,"deviceVer":900,"driverVer":13000,
"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"regsPerBlock":65536,
"multiProcessorCount":132,"warpSize":32,"maxSharedMemoryPerBlock":49152,
"maxSharedMemoryPerBlockOptin":232448,"reservedSharedMemoryPerBlock":1024,
"maxRegistersPerSM":65536,"maxCtasPerSM":32,"maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,
"pciDeviceId":0,"isTccDriver":0,"supportCoopLaunch":1,"smClockRateKHz":1980000,
"memClockRateKHz":3201000,"l2CacheSize":62914560,"deviceName":"NVIDIA H200",
"totalGlobalMem":150754820096})";

/// sm_80.
constexpr const char* kA100 = R"({"cudaDeviceId":0,"deviceVer":800,"driverVer":13000,
"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"regsPerBlock":65536,
"multiProcessorCount":108,"warpSize":32,"maxSharedMemoryPerBlock":49152,
"maxSharedMemoryPerBlockOptin":166912,"reservedSharedMemoryPerBlock":1024,
"maxRegistersPerSM":65536,"maxCtasPerSM":32,"maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,
"pciDeviceId":0,"isTccDriver":0,"supportCoopLaunch":1,"smClockRateKHz":1410000,
"memClockRateKHz":1215000,"l2CacheSize":41943040,"deviceName":"NVIDIA A100-SXM4-40GB",
"totalGlobalMem":42505273344})";

}  // namespace crema
