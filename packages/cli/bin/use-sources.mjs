import { register } from "node:module";
import { register as registerTsx } from "tsx/esm/api";

/** From now on this process imports TypeScript, and the packages of the repository from their sources. */
export function useSources() {
  registerTsx();
  register("./source-condition.mjs", import.meta.url);
}
