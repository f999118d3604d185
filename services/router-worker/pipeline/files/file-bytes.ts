import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { GuardedGetter } from '#shared/http/guarded-get.ts';
import type { CallSignal } from '../../call-signal.ts';
import type { PdfItem } from './file-items.ts';

/** Of one file. Those inside of requests are smaller: the bus takes no larger body. */
const MAX_FILE_BYTES = 32 * 1_024 * 1_024;
const FETCH_TIMEOUT_MS = 30_000;
/** Stores of files name no other type where none was set. */
const MEDIA_TYPES: ReadonlySet<string> = new Set(['application/pdf', 'application/x-pdf', 'application/octet-stream', 'binary/octet-stream']);
/** Readers accept a head that begins within the first kibibyte. */
const HEAD = Buffer.from('%PDF-');
const HEAD_WITHIN_BYTES = 1_024;

export interface FileBytes {
  bytes: Buffer;
  /** SHA-256, in hex. */
  hash: string;
}

/** What an address has is no PDF. */
export interface OtherFile {
  /** `request.invalid` naming the file's field. */
  refusal: SwitchyardError;
}

/** @throws `request.invalid` and `request.too_large` naming the file's field; the signal's reason */
export async function bytesOf({ source, path }: PdfItem, getter: Pick<GuardedGetter, 'get'>, signal: CallSignal): Promise<FileBytes | OtherFile> {
  const bytes = source.type === 'url' ? await fetched(source.url, path, getter, signal) : Buffer.from(source.data, 'base64');
  if ('refusal' in bytes) return bytes;
  if (!bytes.subarray(0, HEAD_WITHIN_BYTES).includes(HEAD)) {
    const refusal = invalidFile(path, 'is not a PDF');
    if (source.type === 'url') return { refusal };
    throw refusal;
  }
  // In a thread of Node's own: 32 MiB take a tenth of a second.
  const digest = await crypto.subtle.digest('SHA-256', bytes);
  signal.throwIfAborted();
  return { bytes, hash: Buffer.from(digest).toString('hex') };
}

async function fetched(url: string, path: string, getter: Pick<GuardedGetter, 'get'>, signal: CallSignal): Promise<Buffer | OtherFile> {
  signal.throwIfAborted();
  const controller = new AbortController();
  const onAbort = () => controller.abort(signal.reason);
  signal.addEventListener('abort', onAbort);
  try {
    const get = { url, mediaTypes: MEDIA_TYPES, maxBytes: MAX_FILE_BYTES, timeoutMs: FETCH_TIMEOUT_MS, signal: controller.signal };
    return (await getter.get(get)).bytes;
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    if (!(error instanceof SwitchyardError)) throw error;
    if (error.details.reason === 'too_large') throw tooLarge(path, `has more than ${MAX_FILE_BYTES} bytes`, error);
    const refusal = invalidFile(path, `can't be fetched: ${error.message}`, error);
    if (error.details.reason === 'type_not_allowed') return { refusal };
    throw refusal;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

export function invalidFile(param: string, problem: string, cause?: unknown): SwitchyardError {
  return new SwitchyardError('request.invalid', `${param} ${problem}`, { cause, details: { param } });
}

export function tooLarge(param: string, problem: string, cause?: unknown): SwitchyardError {
  return new SwitchyardError('request.too_large', `${param} ${problem}`, { cause, details: { param } });
}
