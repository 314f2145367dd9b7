  $ nvlsim platform list | grep -A 1 -E '^gb300-nvl72'
  gb300-nvl72        NVIDIA GB300 NVL72 (Grace and Blackwell Ultra) as Azure ND
                     GB300 v6

  $ nvlsim model list | grep -E '^(llama3-8b|deepseek-r1|gpt3-13b) '
  deepseek-r1                      671.0 B, 37.6 B active; 61 layers of 7168; 256
  gpt3-13b                         12.8 B; 40 layers of 5120
  llama3-8b                        8.0 B; 32 layers of 4096

  $ nvlsim scenario list | cut -d' ' -f1 | grep 512
  deepseek-v3-grpo-gb200-512
  deepseek-v3-grpo-gb300-512
  llama3.1-405b-gb200-512
  llama3.1-405b-gb300-512

  $ nvlsim model list --format json | grep '"llama3-8b"'
      "name": "llama3-8b",

check is silent about good files.

  $ nvlsim scenario check train.json serve.json llama3.1-405b-gb300-512

  $ nvlsim platform check gb300-nvl72 gb200-nvl72; nvlsim stack check nccl-2.29; nvlsim model check llama3-8b

  $ nvlsim platform check train.json; nvlsim stack check train.json; nvlsim model check train.json
  2> ./train.json#/schema: this is a scenario, not a platform
  2> ./train.json#/schema: this is a scenario, not a stack
  2> ./train.json#/schema: this is a scenario, not a model
  [2]

  $ nvlsim platform show gb300_nvl72
  2> unknown platform "gb300_nvl72"; did you mean "gb300-nvl72"?
  [2]

  $ nvlsim platform show gb300-nvl72 --set '/gpu/l2=126'
  2> --set#/gpu/l2: expected a size such as "288 GB", found integer 126
  [2]

  $ nvlsim stack show nccl-2.29 | head -3
  nccl-2.29: NCCL 2.29 collectives, pooled over the published sweeps of NVLink 3,
  4 and 5 domains and the fabrics between them; TensorRT-LLM all-reduce and expert
  exchange kernels

  $ nvlsim model show llama3-8b | head -4
  llama3-8b (llama)
  
  Shape
    layers                32

  $ mkdir folder.json; nvlsim platform check ./folder.json ./none.json
  2> ./folder.json: is a directory
  2> ./none.json: no such file
  [4]
