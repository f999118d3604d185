const FORMAT = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });
const TODAY = new Intl.DateTimeFormat(undefined, { timeStyle: 'short' });

/** A time in the reader's own zone and language; empty for what is no time. @param at RFC 3339 */
export function timeText(at: string): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return '';
  return (date.toDateString() === new Date().toDateString() ? TODAY : FORMAT).format(date);
}
