/** The lines of a byte stream, each as soon as it is complete: how the API server separates the events of a watch. */

/** Longer than any object the API server stores (1.5 MiB in etcd, 3 MiB a request), so a broken peer cannot fill our memory. */
const LINE_LENGTH_MAX = 16 * 1024 * 1024;

export async function* jsonLines(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let pieces: string[] = []; // of a line not yet complete: joined once, so that a long line costs no more than its length
  let length = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      let text = decoder.decode(value, { stream: true });
      for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n")) {
        const line = pieces.join("") + text.slice(0, end);
        pieces = [];
        length = 0;
        text = text.slice(end + 1);
        if (line.trim() !== "") yield line;
      }
      pieces.push(text);
      length += text.length;
      if (length > LINE_LENGTH_MAX) throw new Error(`a watch event longer than ${LINE_LENGTH_MAX} characters`);
    }
    const rest = pieces.join("");
    if (rest.trim() !== "") yield rest;
  } finally {
    await reader.cancel().catch((error: unknown) => void error); // the connection may be gone already: nothing left to release
  }
}
