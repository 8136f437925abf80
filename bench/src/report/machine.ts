import { cpus, totalmem } from "node:os";
import type { Report } from "./figures.js";

export function machine(): Report["machine"] {
  const processors = cpus();
  return {
    cpus: processors.length,
    model: processors[0]?.model ?? "unknown",
    memoryGiB: Math.round(totalmem() / 2 ** 30),
  };
}
