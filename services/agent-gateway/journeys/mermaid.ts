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

/** The graph as a Mermaid flowchart. */
export function mermaidOf(graph: JourneyGraph): string {
  return chartOf(linesOf(graph, 'n'));
}

/** Several graphs as one Mermaid flowchart, each in a frame with its routine's id and title. */
export function mermaidOfAll(graphs: readonly JourneyGraph[]): string {
  const frames = graphs.flatMap((graph, index) => {
    const { routine_id: id, title } = graph.journey;
    return [`subgraph r${index}["${labelOf([id, title])}"]`, ...linesOf(graph, `r${index}n`).map((line) => `  ${line}`), 'end'];
  });
  return chartOf(frames);
}

function chartOf(lines: readonly string[]): string {
  return `${['flowchart TD', ...lines.map((line) => `  ${line}`)].join('\n')}\n`;
}

/** Nodes are named by a prefix and a number, since ids of steps may be words of Mermaid, such as `end`. */
function linesOf({ nodes, edges }: JourneyGraph, prefix: string): string[] {
  const names = new Map(nodes.map(({ id }, index) => [id, `${prefix}${index}`]));
  const boxes = nodes.map(({ id, kind, action, tools }) => {
    const [open, close] = SHAPES[kind];
    return `${names.get(id)}${open}"${labelOf([id, action ?? tools.join(', ')])}"${close}`;
  });
  const arrows = edges.map(({ source, target, condition }) => {
    return `${names.get(source)} -->${condition === null ? '' : `|"${labelOf([condition])}"|`} ${names.get(target)}`;
  });
  return [...boxes, ...arrows];
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
