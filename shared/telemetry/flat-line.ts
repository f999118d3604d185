import { redactPlain } from './redact.ts';

type Plain = string | number | boolean | null | undefined;
export type FlatFields = Readonly<Record<string, Plain>>;

/** Those with more are rendered by pino. */
const MAX_FIELDS = 64;

/** What all lines of a process begin with behind their level and time: members of JSON, without braces. */
export function lineBase(service: string): string {
  return `"service":${JSON.stringify(service)},"pid":${process.pid}`;
}

/** Whether no field is an object, which may have changed by the time that its line is rendered. */
export function isFlat(fields: Record<string, unknown>): fields is FlatFields {
  let count = 0;
  for (const key in fields) {
    count += 1;
    if (count > MAX_FIELDS || !isPlain(fields[key])) return false;
  }
  return true;
}

function isPlain(value: unknown): value is Plain {
  switch (typeof value) {
    case 'object':
      return value === null;
    case 'string':
    case 'number':
    case 'boolean':
    case 'undefined':
      return true;
    default:
      return false;
  }
}

/** A line as pino writes it, with its line end. @param message masked @param atMs epoch milliseconds */
export function flatLine({ level, atMs, base, fields, message }: { level: string; atMs: number; base: string; fields: FlatFields; message: string }): string {
  let line = `{"level":"${level}","time":"${new Date(atMs).toISOString()}",${base}`;
  for (const key of Object.keys(fields)) {
    const value = redactPlain(key, fields[key]);
    // JSON has neither `undefined` nor numbers that are not finite: the first is left out, these are null.
    if (value !== undefined) line += `,${JSON.stringify(key)}:${typeof value === 'string' ? JSON.stringify(value) : jsonOf(value)}`;
  }
  return `${line},"msg":${JSON.stringify(message)}}\n`;
}

function jsonOf(value: number | boolean | null): string {
  return typeof value === 'number' && !Number.isFinite(value) ? 'null' : String(value);
}
