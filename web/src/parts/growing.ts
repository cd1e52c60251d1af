// growing.ts - long lists are drawn a part at a time, so that the first part is there at once
import { useEffect, useState } from "preact/hooks";

const FIRST = 16;
const MORE = 14;

/** How many of `total` to draw now; grows with every frame. */
export function useGrowing(total: number): number {
  const [count, setCount] = useState(FIRST);
  useEffect(() => {
    if (count >= total) return;
    const frame = requestAnimationFrame(() => setCount(count + MORE));
    return () => cancelAnimationFrame(frame);
  }, [count, total]);
  return Math.min(count, total);
}
