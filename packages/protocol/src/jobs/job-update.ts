import { type Static, Type } from "typebox";
import { schemaCheck } from "./schema-check.ts";

/** A live update of a running attempt. Not stored. */
export const JobUpdateSchema = Type.Object({
  jobId: Type.String({ maxLength: 256 }),
  /** The attempt that emitted it, counted as `tries`. */
  attempt: Type.Integer({ minimum: 1 }),
  /** From 1 in each attempt. */
  sequence: Type.Integer({ minimum: 1 }),
  timestamp: Type.String({ maxLength: 40 }),
  update: Type.Unknown(),
});
export type JobUpdate = Static<typeof JobUpdateSchema>;

const check = schemaCheck(JobUpdateSchema);

export function readJobUpdate(body: unknown, jobId: string): JobUpdate | undefined {
  return check(body) && body.jobId === jobId ? body : undefined;
}

/** Which updates of a job are news: none of an attempt that is over, none twice. */
export class UpdateFloor {
  #attempt = 0;
  #sequence = 0;

  /** True for an update that is to be passed on. */
  accept({ attempt, sequence }: Pick<JobUpdate, "attempt" | "sequence">): boolean {
    if (attempt < this.#attempt || (attempt === this.#attempt && sequence <= this.#sequence)) return false;
    this.#attempt = attempt;
    this.#sequence = sequence;
    return true;
  }

  /** A lifecycle event tells of an attempt: updates of earlier ones are late. */
  raise(tries: number): void {
    if (tries <= this.#attempt) return;
    this.#attempt = tries;
    this.#sequence = 0;
  }
}
