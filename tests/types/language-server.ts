import { type ChildProcess, spawn } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** The TypeScript language server that editors use, over standard input and output. */
export class LanguageServer implements AsyncDisposable {
  readonly #process: ChildProcess;
  readonly #waiting = new Map<number, (result: unknown) => void>();
  #next = 1;
  #buffer = Buffer.alloc(0);

  private constructor(process: ChildProcess) {
    this.#process = process;
    process.stdout?.on("data", (chunk: Buffer) => this.#read(chunk));
  }

  static async start(root: string): Promise<LanguageServer> {
    const require = createRequire(import.meta.url);
    const tsc = join(require.resolve("typescript/package.json"), "..", "bin", "tsc");
    const child = spawn(process.execPath, [tsc, "--lsp", "--stdio"], { stdio: ["pipe", "pipe", "ignore"] });
    const server = new LanguageServer(child);
    await server.request("initialize", {
      processId: process.pid,
      rootUri: pathToFileURL(root).href,
      capabilities: {},
    });
    server.#send({ method: "initialized", params: {} });
    return server;
  }

  open(path: string, text: string): string {
    const uri = pathToFileURL(path).href;
    this.#send({
      method: "textDocument/didOpen",
      params: { textDocument: { uri, languageId: "typescript", version: 1, text } },
    });
    return uri;
  }

  /** What the editor shows over a position, without the code fence. */
  async hover(uri: string, position: { line: number; character: number }): Promise<string> {
    const result = await this.request("textDocument/hover", { textDocument: { uri }, position });
    const { contents } = (result ?? {}) as { contents?: { value?: string } | string };
    const text = typeof contents === "string" ? contents : (contents?.value ?? "");
    return /```\w*\n([\s\S]*?)\n```/.exec(text)?.[1] ?? text;
  }

  request(method: string, params: object): Promise<unknown> {
    const id = this.#next++;
    this.#send({ id, method, params });
    return new Promise((resolve) => this.#waiting.set(id, resolve));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const exited = new Promise((resolve) => this.#process.once("exit", resolve));
    this.#process.kill();
    await exited;
  }

  #send(message: object): void {
    const text = JSON.stringify({ jsonrpc: "2.0", ...message });
    this.#process.stdin?.write(`Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
  }

  #read(chunk: Buffer): void {
    this.#buffer = Buffer.concat([this.#buffer, chunk]);
    for (;;) {
      const end = this.#buffer.indexOf("\r\n\r\n");
      const length = Number(
        /Content-Length: (\d+)/.exec(this.#buffer.toString("latin1", 0, Math.max(0, end)))?.[1],
      );
      if (end < 0 || this.#buffer.length < end + 4 + length) return;
      const message = JSON.parse(this.#buffer.toString("utf8", end + 4, end + 4 + length)) as {
        id?: number;
        method?: string;
        result?: unknown;
      };
      this.#buffer = this.#buffer.subarray(end + 4 + length);
      if (message.id === undefined) continue;
      // A request of the server's own wants an answer, whatever it is.
      if (message.method !== undefined) this.#send({ id: message.id, result: null });
      else this.#waiting.get(message.id)?.(message.result);
    }
  }
}
