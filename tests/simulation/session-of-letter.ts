/** What the generated column `session_id` of a dead letter gets: migration 0022. */
export function sessionOfLetter(source: unknown, body: unknown): string | null {
  const pattern = source === 'call' ? /"callId":"[^"]*","origin":"([A-Za-z0-9_-]{1,128})"/ : /"sessionId":"([A-Za-z0-9_-]{1,128})"/;
  return pattern.exec(body as string)?.[1] ?? null;
}
