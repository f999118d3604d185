import { z } from 'zod';
import type { ProviderPart, ReasoningBlock, ReasoningPart } from '#shared/contracts/router/provider-part.ts';

/** What a delta may have beside text and tool calls. Each item is read by itself, and one of an unknown form is skipped: vendors add types. */
const text = z.string().nullish().catch(null);
const count = z.number().int().min(0).nullish().catch(null);
const names = { id: text, index: count, format: text };

const reasoningDetail = z.discriminatedUnion('type', [
  z.object({ type: z.literal('reasoning.text'), text, signature: text, ...names }),
  z.object({ type: z.literal('reasoning.summary'), summary: z.string(), ...names }),
  z.object({ type: z.literal('reasoning.encrypted'), data: z.string(), ...names }),
]);
type UpstreamDetail = z.infer<typeof reasoningDetail>;

const annotation = z.object({
  type: z.literal('url_citation'),
  url_citation: z.object({ url: z.string().min(1), title: text, content: text, start_index: count, end_index: count }),
});
const image = z.object({ image_url: z.object({ url: z.string().min(1) }) });
const audio = z.object({ id: text, data: text, transcript: text, expires_at: count });

/** Of reasoning details without one. */
const UNKNOWN_FORMAT = 'unknown';

/** Reads the attachments of one answer. */
export class AttachmentReader {
  #block: ReasoningBlock | null = null;
  #audioId = '';

  /** Whether the texts of the delta's `reasoning` are among them. */
  readReasoning(details: unknown, parts: ProviderPart[]): boolean {
    let hasText = false;
    for (const detail of itemsOf(details, reasoningDetail)) {
      const block = this.#blockOf(detail);
      const read = reasoningPartsOf(detail, block);
      hasText ||= read.some((part) => 'text' in part);
      parts.push(...read);
    }
    return hasText;
  }

  readAnnotations(annotations: unknown, parts: ProviderPart[]): void {
    for (const { type, url_citation: cited } of itemsOf(annotations, annotation)) {
      const { url, title, content, start_index: start, end_index: end } = cited;
      const url_citation = {
        url,
        // Clients require one.
        title: title ?? url,
        ...(content && { content }),
        ...(typeof start === 'number' && { start_index: start }),
        ...(typeof end === 'number' && { end_index: end }),
      };
      parts.push({ type: 'annotation', annotation: { type, url_citation } });
    }
  }

  readImages(images: unknown, parts: ProviderPart[]): void {
    for (const { image_url: shown } of itemsOf(images, image)) parts.push({ type: 'image', url: shown.url });
  }

  readAudio(given: unknown, parts: ProviderPart[]): void {
    const piece = audio.safeParse(given).data;
    if (piece === undefined) return;
    // Only the first piece names the sound.
    this.#audioId = piece.id || this.#audioId;
    const { data, transcript, expires_at: expiresAt } = piece;
    parts.push({
      type: 'audio-delta',
      id: this.#audioId,
      data: data || null,
      transcript: transcript || null,
      ...(typeof expiresAt === 'number' && { expiresAt }),
    });
  }

  /** One object for details in a row that name the same block; a detail without index is part of the last. */
  #blockOf({ id = null, index, format }: UpstreamDetail): ReasoningBlock {
    const block = { index: index ?? this.#block?.index ?? 0, id, format: format ?? UNKNOWN_FORMAT };
    const last = this.#block;
    if (last === null || last.index !== block.index || last.id !== block.id || last.format !== block.format) this.#block = block;
    return this.#block ?? block;
  }
}

function itemsOf<Item>(list: unknown, schema: z.ZodType<Item>): Item[] {
  return Array.isArray(list) ? list.flatMap((item) => schema.safeParse(item).data ?? []) : [];
}

/** No delta is empty. */
function reasoningPartsOf(detail: UpstreamDetail, block: ReasoningBlock): ReasoningPart[] {
  switch (detail.type) {
    case 'reasoning.text':
      return [
        ...(detail.text ? [{ type: 'reasoning-delta' as const, text: detail.text, block }] : []),
        ...(detail.signature ? [{ type: 'reasoning-signature' as const, signature: detail.signature, block }] : []),
      ];
    case 'reasoning.summary':
      return detail.summary === '' ? [] : [{ type: 'reasoning-summary-delta', text: detail.summary, block }];
    case 'reasoning.encrypted':
      return detail.data === '' ? [] : [{ type: 'reasoning-encrypted', data: detail.data, block }];
  }
}
