import { fileURLToPath } from "node:url";

/** Path of a file of this package, named from its root: the same whether sources, built files or a bundle run. */
export function packageFile(name: string): string {
  return fileURLToPath(new URL(name, import.meta.resolve("@trellis/cli/package.json")));
}
