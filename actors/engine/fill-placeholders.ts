/** Values for the placeholders of a prompt. */
export interface PlaceholderValues {
  agent: { id: string; name: string };
  /** For `{{now}}`, epoch milliseconds. */
  nowMs: number;
}

/** Fills `{{agent.name}}`, `{{agent.id}}` and `{{now}}`; unknown placeholders stay. */
export function fillPlaceholders(text: string, { agent, nowMs }: PlaceholderValues): string {
  const values: Record<string, string> = { 'agent.name': agent.name, 'agent.id': agent.id, now: new Date(nowMs).toISOString() };
  return text.replaceAll(/\{\{\s*([a-z.]+)\s*\}\}/g, (whole, name: string) => (Object.hasOwn(values, name) ? String(values[name]) : whole));
}
