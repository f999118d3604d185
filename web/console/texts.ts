/** A time of the API for people, in their own zone. */
export function timeText(time: string | null): string {
  return time === null ? '–' : new Date(time).toLocaleString();
}

export function json(value: unknown): string {
  return JSON.stringify(value, null, 2);
}

/** US dollars. */
export function usd(amount: number | null): string {
  return amount === null ? '–' : `$${amount.toFixed(amount !== 0 && Math.abs(amount) < 0.01 ? 6 : 2)}`;
}

export function ms(duration: number | null): string {
  if (duration === null) return '–';
  return duration < 10_000 ? `${Math.round(duration)} ms` : `${(duration / 1_000).toFixed(1)} s`;
}

export function counted(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`;
}
