/** Bytes of the heap of this process that are in use, after what can be collected was. Needs `--expose-gc`. */
export async function heapUsed(): Promise<number> {
  for (let round = 0; round < 4; round += 1) {
    globalThis.gc?.();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return process.memoryUsage().heapUsed;
}
