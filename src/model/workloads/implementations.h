/* Descriptions of implementations, for --list. */
#pragma once

/* "NVIDIA cuDNN, on CUDA devices", by the word of the parameter. */
const char *implementation_text(const char *implementation);
