/**
 * Untrusted text between two lines that it cannot contain, below a sentence about it.
 * @param id unknown to the sender of the text, equal on a host that takes over
 * @param sentenceOf names the line
 */
export function fenced(id: string, text: string, sentenceOf: (boundary: string) => string): string {
  const boundary = boundaryFor(id, text);
  return [sentenceOf(boundary), boundary, text, boundary].join('\n');
}

function boundaryFor(id: string, text: string): string {
  let boundary = `=====${id}=====`;
  // Ends: a text contains finitely many boundaries.
  for (let number = 2; text.includes(boundary); number += 1) boundary = `=====${id}-${number}=====`;
  return boundary;
}
