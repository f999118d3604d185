/** Polls until the condition's result is truthy and returns it. @throws on timeout */
export async function until<Value>(look: () => Value | Promise<Value>, what: string, timeoutMs = 60_000): Promise<NonNullable<Value>> {
  const endsAtMs = performance.now() + timeoutMs;
  for (;;) {
    const found = await look();
    if (found !== null && found !== undefined && found !== false) return found;
    if (performance.now() > endsAtMs) throw new Error(`waited ${timeoutMs} ms in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
