import type { JourneyGraph } from './journeys.ts';

/** A text longer than this ends in an ellipsis. */
const LABEL_CHARACTERS = 120;

const SHAPES: Readonly<Record<JourneyGraph['nodes'][number]['kind'], readonly [string, string]>> = {
  root: ['((', '))'],
  chat: ['[', ']'],
  tool: ['[[', ']]'],
  fork: ['{', '}'],
  end: ['(((', ')))'],
};

/** The graph as a Mermaid flowchart. Nodes have numbers for names, since ids of steps may be words of Mermaid, such as `end`. */
export function mermaidOf({ nodes, edges }: JourneyGraph): string {
  const names = new Map(nodes.map(({ id }, index) => [id, `n${index}`]));
  const lines = nodes.map(({ id, kind, action, tools }) => {
    const [open, close] = SHAPES[kind];
    return `  ${names.get(id)}${open}"${labelOf([id, action ?? tools.join(', ')])}"${close}`;
  });
  const arrows = edges.map(({ source, target, condition }) => {
    return `  ${names.get(source)} -->${condition === null ? '' : `|"${labelOf([condition])}"|`} ${names.get(target)}`;
  });
  return `${['flowchart TD', ...lines, ...arrows].join('\n')}\n`;
}

/** Characters with a meaning in Mermaid or HTML as entities, since labels are rendered as HTML. */
function labelOf(texts: readonly string[]): string {
  const shown = texts.filter((text) => text !== '').map((text) => escaped(shortened(text.replaceAll(/\s+/g, ' ').trim())));
  return shown.join('<br>');
}

function shortened(text: string): string {
  const characters = [...text];
  return characters.length <= LABEL_CHARACTERS ? text : `${characters.slice(0, LABEL_CHARACTERS - 1).join('')}…`;
}

function escaped(text: string): string {
  return text.replaceAll(/[^\p{L}\p{N} .,:!?_…-]/gu, (character) => `#${character.codePointAt(0)};`);
}
