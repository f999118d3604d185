import { describe, expect, it } from 'vitest';
import { geminiChunk } from './chunk.ts';
import { ChunkReader } from './to-parts.ts';

const TEXT = 'Größe: 😀 It rains in Zürich. It is dry in Bern.';
const PAGES = [
  { web: { uri: 'https://one.example/', title: 'One' } },
  { web: { uri: 'https://two.example/', title: 'Two' } },
  { web: { uri: 'https://three.example/', title: 'Three' } },
];

/** As the vendor states it: in bytes, and without a start of 0. */
function segmentOf(quoted: string, text = TEXT) {
  const start = Buffer.byteLength(text.slice(0, text.indexOf(quoted)));
  return { ...(start > 0 && { startIndex: start }), endIndex: start + Buffer.byteLength(quoted), text: quoted };
}

function rangeOf(quoted: string) {
  const start = TEXT.indexOf(quoted);
  return { start_index: start, end_index: start + quoted.length };
}

const textChunk = (text: string) => ({ candidates: [{ index: 0, content: { role: 'model', parts: [{ text }] } }], responseId: 'r' });
const endChunk = (groundingMetadata: object, parts: object[] = []) => ({
  candidates: [{ index: 0, content: { role: 'model', parts }, finishReason: 'STOP', groundingMetadata }],
});

function annotationsOf(chunks: readonly object[], searchesWeb = true): unknown[] {
  const reader = new ChunkReader(() => {}, searchesWeb);
  const parts = reader.readEvents(chunks.map((chunk) => ({ event: null, data: JSON.stringify(chunk) })));
  const last = parts.findIndex(({ type }) => type === 'finish');
  return parts.slice(0, last).flatMap((part) => (part.type === 'annotation' && part.annotation.type === 'url_citation' ? [part.annotation.url_citation] : []));
}

const [one, two, three] = PAGES.map(({ web: { uri, title } }) => ({ url: uri, title }));
const rain = 'It rains in Zürich.';
const dry = 'It is dry in Bern.';

describe('the places of citations', () => {
  const supports = [
    { segment: segmentOf(rain), groundingChunkIndices: [0, 1] },
    { segment: segmentOf(dry), groundingChunkIndices: [1], confidenceScores: [0.9] },
  ];

  it('are in UTF-16 code units, where the vendor counts bytes, in any number of chunks', () => {
    const expected = [
      { ...one, ...rangeOf(rain) },
      { ...two, ...rangeOf(rain) },
      { ...two, ...rangeOf(dry) },
      // Named by no place.
      three,
    ];
    const end = endChunk({ groundingChunks: PAGES, groundingSupports: supports });
    expect(annotationsOf([textChunk(TEXT), end])).toEqual(expected);
    expect(annotationsOf([...TEXT].map<object>(textChunk).concat(end))).toEqual(expected);
  });

  it('count once where chunks repeat them, and go on with the pages of chunks before', () => {
    const metadata = { groundingChunks: PAGES.slice(0, 2), groundingSupports: supports.slice(0, 1) };
    const first = { candidates: [{ index: 0, content: { role: 'model', parts: [{ text: TEXT }] }, groundingMetadata: metadata }] };
    const last = endChunk({ groundingSupports: supports });
    expect(annotationsOf([first, first, last])).toEqual([
      { ...one, ...rangeOf(rain) },
      { ...two, ...rangeOf(rain) },
      { ...two, ...rangeOf(dry) },
    ]);
  });

  it('are those of the quoted text where offsets count from another part, and none where it is not there', () => {
    const other = [
      { segment: { partIndex: 1, endIndex: Buffer.byteLength(dry), text: dry }, groundingChunkIndices: [0] },
      { segment: { endIndex: 5, text: 'not in the answer' }, groundingChunkIndices: [1] },
    ];
    expect(annotationsOf([textChunk(TEXT), endChunk({ groundingChunks: PAGES.slice(0, 2), groundingSupports: other })])).toEqual([
      { ...one, ...rangeOf(dry) },
      two,
    ]);
  });

  it('without a quoted text are inside of the answer', () => {
    const { text: _, ...segment } = segmentOf(dry);
    const beyond = { segment: { startIndex: 1, endIndex: 10_000 }, groundingChunkIndices: [1] };
    const metadata = { groundingChunks: PAGES.slice(0, 2), groundingSupports: [{ segment, groundingChunkIndices: [0] }, beyond] };
    expect(annotationsOf([textChunk('plain text, ascii'), endChunk(metadata)])).toEqual([one, two]);
    expect(annotationsOf([textChunk(TEXT), endChunk({ ...metadata, groundingSupports: [{ segment, groundingChunkIndices: [0] }] })])).toEqual([
      { ...one, ...rangeOf(dry) },
      two,
    ]);
  });

  it('are bounded, and unreadable ones are passed over', () => {
    const many = Array.from({ length: 1_000 }, (_, index) => ({ segment: { startIndex: index, endIndex: index + 1 }, groundingChunkIndices: [0] }));
    const text = 'x'.repeat(2_000);
    expect(annotationsOf([textChunk(text), endChunk({ groundingChunks: PAGES.slice(0, 1), groundingSupports: many })])).toHaveLength(256);
    for (const odd of [[7], [{ segment: 'x' }], [{ groundingChunkIndices: [99, -1] }], 'none']) {
      const chunk = endChunk({ groundingChunks: PAGES.slice(0, 1), groundingSupports: odd });
      expect(geminiChunk.safeParse(chunk).success).toBe(true);
      expect(annotationsOf([textChunk(TEXT), chunk])).toEqual([one]);
    }
  });

  it('are not looked for in answers to requests without a search', () => {
    expect(annotationsOf([textChunk(TEXT), endChunk({ groundingChunks: PAGES.slice(0, 1), groundingSupports: supports })], false)).toEqual([one]);
  });
});
