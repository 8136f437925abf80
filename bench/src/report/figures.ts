/** One measured number, and what it is measured against. */
export interface Figure {
  readonly value: number;
  readonly unit: string;
  /** Name of the figure that it is a ratio to. */
  readonly baseline?: string;
  readonly ratio?: number;
  readonly goal?: string;
  readonly ok: boolean;
}

export type Figures = Record<string, Figure>;

/** What a benchmark prints as its last line with `--json`. */
export interface Report {
  readonly bench: string;
  readonly machine: { readonly cpus: number; readonly model: string; readonly memoryGiB: number };
  readonly versions: Record<string, string>;
  readonly figures: Figures;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2;
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
