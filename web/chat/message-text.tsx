import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { markdownNodes } from '../markdown.ts';

interface MessageTextProps {
  text: string;
  /** Still in generation: it changes often. */
  isOpen: boolean;
}

/** A long text takes long to parse: while it grows, that is done a tenth of the time at most. */
const PAUSE_FACTOR = 9;

/** Markdown, sanitised. */
export function MessageText({ text, isOpen }: MessageTextProps) {
  const box = useRef<HTMLDivElement>(null);
  const drawn = useRef({ text: '', notBeforeMs: 0 });
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const draw = () => {
    if (box.current === null || drawn.current.text === text) return;
    const startMs = performance.now();
    const nodes = markdownNodes(text);
    box.current.classList.toggle('plain', nodes === null);
    box.current.replaceChildren(nodes ?? text);
    const endMs = performance.now();
    drawn.current = { text, notBeforeMs: endMs + PAUSE_FACTOR * (endMs - startMs) };
  };
  useLayoutEffect(() => {
    clearTimeout(timer.current);
    const waitMs = isOpen ? drawn.current.notBeforeMs - performance.now() : 0;
    if (waitMs <= 0) draw();
    else timer.current = setTimeout(draw, waitMs);
  }, [text, isOpen]);
  useEffect(() => () => clearTimeout(timer.current), []);
  return <div class="text" ref={box} />;
}
