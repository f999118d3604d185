import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { vi } from 'vitest';
import type { Patch } from './planted-faults.ts';

const TIME_LETTERS = 10;
const HEX_DIGITS = '0123456789abcdef';
const ULID_LETTERS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
export const ROOT = resolve(import.meta.dirname, '../..');

/** Ids come from the seed, and pauses are of simulated time. @param areUlids ids have the letters of ULIDs, since they are parsed */
export function replaceChance({ areUlids = false } = {}): void {
  vi.doMock('../../shared/ids.ts', () => ({
    ulid: areUlids ? () => inUlidLetters(seededUlid()) : seededUlid,
    ulidTimeMs: (id: string) =>
      areUlids ? [...id.slice(0, TIME_LETTERS)].reduce((sum, letter) => sum * ULID_LETTERS.length + ULID_LETTERS.indexOf(letter), 0) : 0,
    traceId: () => randomText(HEX_DIGITS, 32),
    randomHex: (sizeBytes: number) => randomText(HEX_DIGITS, 2 * sizeBytes),
  }));
  vi.doMock('node:timers/promises', () => ({ setTimeout: simulatedPause }));
}

/** Loads modules while a source file is replaced by its patched copy. @param patch null: none @throws TypeError when it does not fit */
export async function withPatch<Loaded>(patch: Patch | null, load: () => Promise<Loaded>): Promise<Loaded> {
  if (patch === null) return load();
  const copy = patchedCopy(patch);
  vi.doMock(join(ROOT, patch.file), () => import(copy.path));
  try {
    return await load();
  } finally {
    vi.doUnmock(join(ROOT, patch.file));
    copy.remove();
  }
}

/** The patched source in a temporary folder; its imports are absolute paths of the product. @throws TypeError when the patch does not fit */
function patchedCopy({ file, find, replace }: Patch): { path: string; remove(): void } {
  const source = readFileSync(join(ROOT, file), 'utf8');
  if (source.split(find).length !== 2) throw new TypeError(`${file} holds ${source.split(find).length - 1} times: ${find}`);
  const text = source
    .replace(find, replace)
    .replaceAll(/from '#([^']+)'/g, (_, path: string) => `from '${join(ROOT, path)}'`)
    .replaceAll(/from '(\.[^']+)'/g, (_, path: string) => `from '${resolve(ROOT, dirname(file), path)}'`);
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-fault-'));
  const path = join(folder, 'patched.ts');
  writeFileSync(path, text);
  return { path, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

function randomText(letters: string, length: number): string {
  let text = '';
  for (let index = 0; index < length; index += 1) text += letters[Math.floor(Math.random() * letters.length)];
  return text;
}

/** Sorts by time, as ULIDs do. */
function seededUlid(): string {
  return Math.trunc(Date.now()).toString(32).toUpperCase().padStart(TIME_LETTERS, '0') + randomText(ULID_LETTERS, 16);
}

/** The time is in the digits of base 32. */
function inUlidLetters(id: string): string {
  const time = [...id.slice(0, TIME_LETTERS)].map((digit) => ULID_LETTERS[Number.parseInt(digit, ULID_LETTERS.length)] ?? '');
  return `${time.join('')}${id.slice(TIME_LETTERS)}`;
}

function simulatedPause(ms: number, value: unknown, { signal }: { signal?: AbortSignal } = {}): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(value), ms);
    const end = () => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    if (signal?.aborted === true) end();
    else signal?.addEventListener('abort', end, { once: true });
  });
}
