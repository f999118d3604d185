import { randomBytes } from 'node:crypto';

/** Values of credentials that occur nowhere else, by name. */
export type Planted = Map<string, string>;

/** Longer than any that is required, and of characters that no encoding changes. */
export function plantedValue(name: string): string {
  return `planted-${name}-${randomBytes(12).toString('hex')}`;
}

/** Text of one place, in pieces: lines, messages, rows. */
export interface Place {
  name: string;
  pieces: string[];
}

/** Each credential that stands in the pieces, in whichever of its usual encodings, with the beginning of the first piece that has it. */
export function leaksIn({ pieces }: Place, planted: Planted): string[] {
  return [...planted].flatMap(([name, value]) => {
    const spellings = spellingsOf(value);
    const piece = pieces.find((one) => spellings.some((spelling) => one.includes(spelling)));
    return piece === undefined ? [] : [`${name}: ${around(piece, spellings)}`];
  });
}

/** Base64 differs by what stands before it, with each of three lengths. */
function spellingsOf(value: string): string[] {
  const inBase64 = [0, 1, 2].map((before) => {
    const text = Buffer.from(`${'x'.repeat(before)}${value}`).toString('base64');
    return text.slice(before === 0 ? 0 : before + 1, -4);
  });
  return [value, Buffer.from(value).toString('hex'), ...inBase64, ...inBase64.map((one) => one.replaceAll('+', '-').replaceAll('/', '_'))];
}

function around(piece: string, spellings: readonly string[]): string {
  const at = Math.min(...spellings.map((spelling) => piece.indexOf(spelling)).filter((index) => index >= 0));
  return piece.slice(Math.max(0, at - 200), at + 20);
}
