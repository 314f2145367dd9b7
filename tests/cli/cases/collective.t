Collectives as nccl-tests prints them.

  $ nvlsim collective all_reduce --platform gb300-nvl72 --gpus 72 -b 1K -e 1G -f 1024 | grep -v Avg | cut -c1-129 | sed 's/ [0-9.]* *[0-9.]* *[0-9.]* *N.A.*/ .../' | sed 's/within .* of/within LOW and HIGH of/'
  # simulated by nvlsim: all_reduce of 72 ranks (one NVLink domain) on gb300-nvl72 with nccl-2.29; no GPU ran and no data were chec
  # Collective test starting: all_reduce_perf
  # nThread 1 nGpus 1 minBytes 1024 maxBytes 1073741824 step: 1024(factor) warmup iters: 1 iters: 20 agg iters: 1 validation: 0 gra
  #
  #                                                              out-of-place                       in-place
  #       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
  #        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
          1024           256     float     sum      -1    ...
       1048576        262144     float     sum      -1    ...
    1073741824     268435456     float     sum      -1  ...
  # Out of bounds values : 0 OK
  #
  # From         1024 B     : nvls
  # From         1024 B     : 90 % of measured times lie within LOW and HIGH of these
  # From   1073741824 B     : 90 % of measured times lie within LOW and HIGH of these
  # Collective test concluded: all_reduce_perf

  $ nvlsim collective all_gather barrier --platform h800 --gpus 16 -b 64M -e 64M | grep -v '^#$' | grep -v Avg | sed 's/ [0-9.]* *[0-9.]* *[0-9.]* *N.A.*/ .../' | sed 's/within .* of/within LOW and HIGH of/'
  # simulated by nvlsim: all_gather of 16 ranks (2 NVLink domains of 8) on h800 with nccl-2.29; no GPU ran and no data were checked
  # Collective test starting: all_gather_perf
  # nThread 1 nGpus 1 minBytes 67108864 maxBytes 67108864 step: 1048576(bytes) warmup iters: 1 iters: 20 agg iters: 1 validation: 0 graph: 0 unalign: 0
  #                                                              out-of-place                       in-place
  #       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
  #        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
      67108864       1048576     float    none      -1   ...
  # Out of bounds values : 0 OK
  # From     67108864 B     : ring
  # 1 of 1 rows use parameters derived from hardware specifications, not measured
  # From     67108864 B     : 90 % of measured times lie within LOW and HIGH of these
  # Collective test concluded: all_gather_perf

  # simulated by nvlsim: barrier of 16 ranks (2 NVLink domains of 8) on h800 with nccl-2.29; no GPU ran and no data were checked
  # Collective test starting: barrier_perf
  # nThread 1 nGpus 1 minBytes 67108864 maxBytes 67108864 step: 1048576(bytes) warmup iters: 1 iters: 20 agg iters: 1 validation: 0 graph: 0 unalign: 0
  #                                                              out-of-place                       in-place
  #       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
  #        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
             0             0     float    none      -1    ...
  # Out of bounds values : 0 OK
  # From            0 B     : ll
  # 1 of 1 rows use parameters derived from hardware specifications, not measured
  # Collective test concluded: barrier_perf

What was chosen, and where that changes.

  $ nvlsim collective all_reduce --platform gb200-x800 --gpus 144 --sharp on -b 8 -e 16G -f 2 | tail -4 | tr -s ' 0-9' | sed 's/[0-9][0-9]*/N/' | sed 's/within .* of/within LOW and HIGH of/'
  # From N B : 90 % of measured times lie within LOW and HIGH of these
  # From N B : 90 % of measured times lie within LOW and HIGH of these
  # From N B : 90 % of measured times lie within LOW and HIGH of these
  # Collective test concluded: all_reduce_perf

  $ nvlsim collective all_reduce --platform gb300-nvl72 --gpus 8 --algorithm halving_doubling -b 1M -e 1M | tail -3
  # From      1048576 B     : halving_doubling
  # 1 of 1 rows use parameters derived from hardware specifications, not measured
  # Collective test concluded: all_reduce_perf

  $ nvlsim collective moe_dispatch --platform gb200-nvl72 --gpus 32 --precision fp8 -b 7K -e 7K | head -1
  # simulated by nvlsim: moe_dispatch of 32 ranks (one NVLink domain) on gb200-nvl72 with nccl-2.29; no GPU ran and no data were checked

Sizes are what nccl-tests would move: whole elements, and whole 16 bytes to each rank.

  $ nvlsim collective all_gather --platform gb300-nvl72 --gpus 72 -b 512M -e 1G -i 512M -d f8e4m3 | grep N/A | cut -c1-51
     536870016       7456528    f8e4m3    none      -
    1073741184      14913072    f8e4m3    none      -

JSON has nccl-tests' members.

  $ nvlsim collective all_reduce --platform gb300-nvl72 --gpus 8 -b 1M -e 1M --format json | tr -d ' \n' | sed 's/:[0-9][0-9]*\.[0-9]*/:N/g' | head -c 804
  {"simulated":true,"platform":"gb300-nvl72","stack":"nccl-2.29","operation":"all_reduce","version":2,"args":["all_reduce_perf","-b","1048576","-e","1048576","-i","1048576","-w","1","-n","20","-d","float","-o","sum","-r","0"],"config":{"ranks":8,"nthreads":1,"ngpus":1,"minimum_bytes":1048576,"maximum_bytes":1048576,"step_bytes":1048576,"warmup_iters":1,"iterations":20,"aggregated_iterations":1,"validation":0,"graph":0,"blocking_collectives":"false","per_iter_timing":"false","parallel_init":"false","devices":[]},"results":[{"size":1048576,"count":262144,"type":"float","redop":"sum","root":"-1","out_of_place":{"time":N,"alg_bw":N,"bus_bw":N,"nwrong":null},"in_place":{"time":N,"alg_bw":N,"bus_bw":N,"nwrong":null},"actual_iterations":20,"experiment_name":"all_reduce","algorithm":"ll","derived":false

Wishes that cannot be.

  $ nvlsim collective all_reduce moe_dispach --platform gb300-nvl72 --gpus 8
  2> unknown operation "moe_dispach"; did you mean "moe_dispatch"?
  [2]

  $ nvlsim collective all_reduce moe_dispatch --platform h100-tcpxo --gpus 8 --algorithm rign --sharp on --fidelity flow --skew 2 -r 9
  2> --algorithm#: moe_dispatch has kernels (--kernel), not algorithms
  2> --algorithm#: unknown algorithm "rign"; did you mean "ring"?
  2> --fidelity#: moe_dispatch supports only closed fidelity
  2> --sharp#: the switches of h100-tcpxo (Ethernet switch) do not support SHARP
  2> -r#: root 9 is out of range for 8 ranks
  [2]

  $ nvlsim collective all_gather --platform gb300-nvl72 --gpus 8 --algorithm one_shot
  2> "one_shot" is an all-reduce inside one domain
  [2]

  $ nvlsim collective moe_dispatch --platform gb200-nvl72 --gpus 8 --kernel one_sided --precision fp8
  2> --kernel#: nccl-2.29 has no expert exchange "one_sided_dispatch_fp8"; it has one_sided_combine_bf16, one_sided_combine_nvfp4, one_sided_dispatch_bf16, one_sided_dispatch_nvfp4, two_sided_combine_bf16, two_sided_combine_fp8, two_sided_combine_low_precision_nvfp4, two_sided_combine_nvfp4, two_sided_dispatch_bf16, two_sided_dispatch_fp8, two_sided_dispatch_nvfp4, two_sided_prepare_bf16, two_sided_prepare_fp8, two_sided_prepare_nvfp4
  [2]

  $ nvlsim collective all_reduce --platform gb300-nvl72 --gpus 144 --set /rack/failed_switch_trays=9
  2> --set#/rack/failed_switch_trays: 9 of 9 switch trays failed; at least one must be left
  [2]

  $ nvlsim collective all_reduce --platform gb300-nvl72 --gpus 8 --fidelity exact
  2> fidelity exact simulates every message, for at most 72 ranks and only with ideal parameters (alpha and bandwidth); use closed or flow
  [2]

What lies below /platform and /stack reaches into those files, as in a scenario.

  $ nvlsim collective all_reduce --platform gb300-nvl72 --gpus 144 --set '/platform/fabric/nic_bandwith=400 Gb/s' --set /stack/collectives/fabric/quantum-x800/all_reduce/ring/nic_shar=1
  2> --set#/platform/fabric/nic_bandwith: unknown member; did you mean "nic_bandwidth"?
  2> --set#/stack/collectives/fabric/quantum-x800/all_reduce/ring/nic_shar: unknown member; did you mean "nic_share"?
  [2]

Steps are sizes too.

  $ nvlsim collective all_reduce --platform gb300-nvl72 --gpus 8 -b 1K -e 3K -i 1K | grep float | awk '{print $1}'
  1024
  2048
  3072

  $ nvlsim collective all_reduce --platform gb300-nvl72 --gpus 8 -i 0; nvlsim collective all_reduce --platform gb300-nvl72 --gpus 8 -i 1X
  2> -i#: 0 is less than one byte
  2> -i#: "1X" is not a size such as 8, 64K, 128M or 16G
  [2]
