import { z } from 'zod';
import type { OcrSettings } from '#shared/config/plugin-settings.ts';
import { valueAt } from '../field-path.ts';

/** Larger ones are left out. */
const MAX_PICTURE_CHARS = 1_024 * 1_024;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;
const DATA_URL = /^data:image\/(?:png|jpeg|gif|webp);base64,(.*)$/s;
/** By the first characters of their base64. */
const TYPES: readonly (readonly [string, string])[] = [
  ['iVBORw0KGgo', 'image/png'],
  ['/9j/', 'image/jpeg'],
  ['R0lGOD', 'image/gif'],
  ['UklGR', 'image/webp'],
];

const list = z.array(z.unknown()).catch([]);
const text = z.string().catch('');

/** Data URLs of the pictures of pages, in their order, at most so many. What is no picture that models take is left out. */
export function picturesIn(pages: readonly unknown[], { images, image }: OcrSettings['response'], most: number): string[] {
  if (images === undefined) return [];
  const found: string[] = [];
  for (const page of pages) {
    for (const picture of list.parse(valueAt(page, images))) {
      if (found.length === most) return found;
      const url = pictureUrl(text.parse(valueAt(picture, image)));
      if (url !== null) found.push(url);
    }
  }
  return found;
}

function pictureUrl(value: string): string | null {
  if (value === '' || value.length > MAX_PICTURE_CHARS) return null;
  const base64 = DATA_URL.exec(value)?.[1] ?? value;
  const type = TYPES.find(([head]) => base64.startsWith(head))?.[1];
  return type === undefined || !BASE64.test(base64) ? null : `data:${type};base64,${base64}`;
}
