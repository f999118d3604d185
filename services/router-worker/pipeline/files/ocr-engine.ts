import { setImmediate as nextTick } from 'node:timers/promises';
import { z } from 'zod';
import { cleanText } from '#shared/clean-text.ts';
import type { OcrSettings } from '#shared/config/plugin-settings.ts';
import { nanoOfUsd } from '#shared/credit/nano-usd.ts';
import { MAX_FILE_PICTURES } from '#shared/credit/parsed-files.ts';
import { failureOf } from '#shared/errors/switchyard-error.ts';
import type { CallSignal } from '../../call-signal.ts';
import { type EngineDeps, engineHeaders, openEngineClient, unavailable } from '../engine-client.ts';
import { valueAt, withValueAt } from '../field-path.ts';
import { picturesIn } from './page-pictures.ts';

/** Answers of an engine that has read the request and refuses the file. */
const REFUSALS: readonly unknown[] = [400, 413, 415, 422];
/** Cleaning more at once would hold the event loop. */
const CLEANED_AT_ONCE = 64 * 1_024;

/** Null: the engine can't read the file. */
type OcrReading = { text: string; pages: number; pictures: readonly string[] } | null;

export interface OcrEngine {
  /** As requests name it. */
  readonly name: string;
  /** Of a page, in billionths of a US dollar. */
  readonly priceNano: number;
  /** @returns the text of the pages, cleaned, and data URLs of at most eight pictures @throws `router.plugin_unavailable`; the signal's reason after an abort */
  read(pdf: Buffer, signal: CallSignal): Promise<OcrReading>;
}

export interface OpenedOcrEngine extends OcrEngine {
  close(): Promise<void>;
}

const pageList = z.array(z.unknown());
const text = z.string().catch('');

/** The reading of a PDF over HTTP: one POST of JSON with the file as a data URL, whose fields the settings name. */
export function openOcrEngine(settings: OcrSettings, deps: EngineDeps): OpenedOcrEngine {
  const { name, url, request, response, timeout_ms: timeoutMs } = settings;
  const client = openEngineClient({ name, url, headers: engineHeaders(settings, deps), timeoutMs }, deps);
  return {
    name,
    priceNano: nanoOfUsd(Number(settings.price)),
    async read(pdf, signal) {
      const body = withValueAt(request.also, request.document, `data:application/pdf;base64,${pdf.toString('base64')}`);
      const answer = await client.post(body, signal).catch((error: unknown) => {
        if (REFUSALS.includes(failureOf(error).details.status)) return null;
        throw error;
      });
      if (answer === null) return null;
      const { data } = pageList.safeParse(valueAt(answer, response.pages));
      if (data === undefined) throw unavailable(name, `its answer has no list "${response.pages}"`);
      const texts = data.map((page) => text.parse(valueAt(page, response.text)));
      return {
        text: (await cleaned(texts.join('\n\n'), signal)).trim(),
        pages: data.length,
        pictures: picturesIn(data, response, MAX_FILE_PICTURES),
      };
    },
    close: () => client.close(),
  };
}

async function cleaned(all: string, signal: CallSignal): Promise<string> {
  const pieces: string[] = [];
  for (let start = 0; start < all.length; start += CLEANED_AT_ONCE) {
    pieces.push(cleanText(all.slice(start, start + CLEANED_AT_ONCE)));
    await nextTick();
    signal.throwIfAborted();
  }
  return pieces.join('');
}
