/** What was opened, in order; closed last in, first out, each to its end, failures collected. */
export class CloseOrder {
  readonly #closers: { name: string; close: () => Promise<void> | void }[] = [];

  add(name: string, close: () => Promise<void> | void): void {
    this.#closers.push({ name, close });
  }

  async closeAll(): Promise<readonly { name: string; error: unknown }[]> {
    const failures: { name: string; error: unknown }[] = [];
    for (let closer = this.#closers.pop(); closer !== undefined; closer = this.#closers.pop()) {
      try {
        await closer.close();
      } catch (error) {
        failures.push({ name: closer.name, error });
      }
    }
    return failures;
  }
}
