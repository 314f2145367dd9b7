A model may be the folder of a published checkpoint. Its hf_quant_config.json then says how the weights are stored.

  $ mkdir Small-FP8 && cat > Small-FP8/config.json <<'X'
  > {"model_type": "llama", "hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 8,
  >  "num_hidden_layers": 4, "vocab_size": 32000, "quantization_config": {"quant_method": "fp8"}}
  > X

  $ nvlsim model show ./Small-FP8 | sed -n '1p; /Checkpoint/,$p'
  Small-FP8 (llama)
  Checkpoint
    stated in  quantization_config
    algorithm                  fp8
    weights                    fp8

  $ echo '{"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8", "exclude_modules": ["*self_attn*"]}}' > Small-FP8/hf_quant_config.json

  $ nvlsim model show Small-FP8/config.json | sed -n '1p; /Checkpoint/,$p'
  Small-FP8 (llama)
  Checkpoint
    stated in  hf_quant_config.json
    algorithm                 NVFP4
    weights                   nvfp4
    attention                  bf16
    KV cache                    fp8

A scenario that leaves precision out takes it from there; an override reaches into the file.

  $ sed 's#"weights": "nvfp4"##; s#"llama2-70b"#"./Small-FP8/"#' serve.json > mine.json
  $ nvlsim run mine.json --format json | sed '/"load"/q' | grep -E '"(weights|attention_weights|kv_cache|model)": "'
        "model": "Small-FP8",
            "weights": "nvfp4",
            "attention_weights": "bf16",
            "kv_cache": "fp8"

  $ nvlsim run mine.json --format json --set /model/hf_quant_config/quantization/quant_algo=FP8 | sed '/"load"/q' | grep '"weights": "'
            "weights": "fp8",

What is wrong in that file is told by its name and its own pointers.

  $ echo '{"quantization": {"quant_algo": 8, "exclude_modules": "lm_head"}}' > Small-FP8/hf_quant_config.json

  $ nvlsim run mine.json
  2> ./Small-FP8/hf_quant_config.json#/quantization/exclude_modules: expected an array of module names
  2> ./Small-FP8/hf_quant_config.json#/quantization/quant_algo: expected a string, found integer 8
  [2]

  $ echo '{"quantization": {"quant_algo": "W4A16_NVFP4"}}' > Small-FP8/hf_quant_config.json

  $ nvlsim run mine.json
  2> mine.json#/workload/engine/weights: the checkpoint's W4A16_NVFP4 (hf_quant_config.json) is none of bf16, fp8, fp8_block, nvfp4, mxfp4, int4; give the precision to simulate
  [2]

  $ echo '{"quantization": ' > Small-FP8/hf_quant_config.json; nvlsim model check Small-FP8/
  2> Small-FP8/hf_quant_config.json#: line 2, column 1: the text ends too early; expected a value
  [2]

  $ rm Small-FP8/config.json; nvlsim model check ./Small-FP8
  2> ./Small-FP8: the folder has no config.json
  [4]
