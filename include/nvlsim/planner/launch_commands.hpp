// Command lines that set a planned deployment up.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "nvlsim/analysis/plan_answers.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

inline constexpr std::array<const char*, 4> launched_engines = {"vllm", "sglang", "tensorrt-llm", "dynamo"};

/// For a serving scenario. `backend` is the engine behind Dynamo. Flags are those of vLLM 0.11, SGLang 0.5,
/// TensorRT-LLM 1.1 and Dynamo 0.6; settings that the scenario does not give are left to the engine.
launch_commands launch_of(const scenario& s, const std::string& engine, const std::string& backend);

/// Name of the model on the Hugging Face hub, where the model file's source names it; else the model's name.
std::string hub_name(const scenario& s);
/// The engine of a stack: "vllm", "sglang" or "tensorrt-llm".
std::string engine_of(const scenario& s);

}  // namespace nvlsim
