/** At most `characters` UTF-16 units of the text; an ellipsis marks what is left out. */
export function shortened(text: string, characters: number): string {
  return text.length <= characters ? text : `${text.slice(0, characters)}…`;
}
