/* fader bench: how fast this computer runs a model: start, prefill, decode, lanes, memory; and what
 * it would cost without a KV cache. Measures the engine alone: no sampling, no screen. */
#ifndef FADER_CLI_BENCH_H
#define FADER_CLI_BENCH_H

int cmd_bench(int argc, char **argv); /* the exit status */

#endif
