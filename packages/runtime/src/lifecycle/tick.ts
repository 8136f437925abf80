/** Runs `callback` once the present turn's input has been handled: how calls of one tick find each other. */
export const afterTick: (callback: () => void) => void = "setImmediate" in globalThis ? immediate : macrotask;

function immediate(callback: () => void): void {
  setImmediate(callback);
}

/** Browsers: a message to ourselves is the cheapest turn that lets pending input in first. */
function macrotask(callback: () => void): void {
  const { port1, port2 } = new MessageChannel();
  const onMessage = () => {
    port1.close();
    callback();
  };
  port1.addEventListener("message", onMessage);
  port1.start();
  port2.postMessage(null);
}
