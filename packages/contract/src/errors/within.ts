import { DefinitionError } from "./definition-error.ts";

/** Runs a part of a definition; a DefinitionError that it throws comes out with the place before its own. */
export function within<T>(place: string, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    if (!(cause instanceof DefinitionError)) throw cause;
    const { hint, problem } = cause;
    throw new DefinitionError({
      place: `${place}, ${cause.place}`,
      problem,
      ...(hint !== undefined && { hint }),
      cause: cause.cause ?? cause,
    });
  }
}
