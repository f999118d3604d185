import type { Annotation } from '#shared/contracts/router/chat-completion.ts';
import type { GeminiGrounding, GeminiSegment } from './chunk.ts';

/** Each costs a pass over the text. Further ones have no place. */
const MAX_PLACES = 256;

interface Page {
  url: string;
  title: string;
}

interface Range {
  start_index: number;
  end_index: number;
}

/** The pages that an answer cites, with their places in its text. Chunks repeat or continue what those before have said. */
export class Citations {
  readonly #keepsText: boolean;
  #text = '';
  /** Of the last chunk that had some: places name pages by their index. */
  #pages: (Page | null)[] = [];
  readonly #cited = new Map<string, { page: Page; segments: GeminiSegment[] }>();
  #places = 0;

  /** @param keepsText whether the answer may have places: the request lets the upstream search */
  constructor(keepsText: boolean) {
    this.#keepsText = keepsText;
  }

  addText(text: string): void {
    if (this.#keepsText) this.#text += text;
  }

  read({ groundingChunks, groundingSupports }: GeminiGrounding): void {
    if (groundingChunks && groundingChunks.length > 0) {
      this.#pages = groundingChunks.map(({ web }) => (web ? { url: web.uri, title: web.title ?? web.uri } : null));
    }
    for (const page of this.#pages) if (page !== null && !this.#cited.has(page.url)) this.#cited.set(page.url, { page, segments: [] });
    for (const { segment, groundingChunkIndices } of groundingSupports ?? []) {
      for (const index of groundingChunkIndices ?? []) {
        const page = this.#pages[index];
        if (!page || !segment || this.#places >= MAX_PLACES) continue;
        this.#places += 1;
        this.#cited.get(page.url)?.segments.push(segment);
      }
    }
  }

  /** One per page and place; a page without a place has one. Once the text is complete. */
  take(): Annotation[] {
    const places = placesIn(this.#text);
    const annotations = [...this.#cited.values()].flatMap(({ page, segments }) => {
      const ranges = new Map(segments.flatMap((segment) => placed(places(segment))));
      if (ranges.size === 0) return [annotationOf(page, null)];
      return [...ranges.values()].map((range) => annotationOf(page, range));
    });
    this.#cited.clear();
    return annotations;
  }
}

function placed(range: Range | null): [string, Range][] {
  return range === null ? [] : [[`${range.start_index}-${range.end_index}`, range]];
}

function annotationOf({ url, title }: Page, range: Range | null): Annotation {
  return { type: 'url_citation', url_citation: { url, title, ...range } };
}

/**
 * Segments have offsets in bytes of UTF-8, and annotations in UTF-16 code units. Offsets count from the start of a part, which streams don't show: where the
 * text at the offsets is not the segment's, it is looked for. Null: it is not there.
 */
function placesIn(text: string): (segment: GeminiSegment) => Range | null {
  const bytes = Buffer.from(text);
  const unitsAt = (offset: number) => (bytes.length === text.length ? offset : bytes.toString('utf8', 0, offset).length);
  return ({ startIndex, endIndex, text: quoted }) => {
    const [start, end] = [unitsAt(startIndex ?? 0), unitsAt(endIndex ?? 0)];
    if (quoted) {
      const at = text.slice(start, end) === quoted ? start : text.indexOf(quoted);
      return at === -1 ? null : { start_index: at, end_index: at + quoted.length };
    }
    return start < end && end <= text.length ? { start_index: start, end_index: end } : null;
  };
}
