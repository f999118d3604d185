/** Between the parts of a slug: `google-vertex/us-east5` is a region of `google-vertex`, `deepinfra/turbo` a variant of `deepinfra`. */
const SEPARATOR = '/';

/** The slugs that name an endpoint with this tag: the tag and each of its bases. A longer slug names other endpoints alone. */
export function slugsOf(tag: string): string[] {
  const slugs = [tag];
  for (let at = tag.lastIndexOf(SEPARATOR); at > 0; at = tag.lastIndexOf(SEPARATOR, at - 1)) slugs.push(tag.slice(0, at));
  return slugs;
}
