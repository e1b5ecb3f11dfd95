# title: CLISP, whose heap has addresses of its own choice: conses, strings, collections, an image
# serves: lisp.run
# seconds: 60
# needs: clisp
set -euo pipefail
cat >work.lisp <<'END'
(defvar *kept* nil)
(dotimes (i 60000) (push (list i (format nil "~a" i)) *kept*))
(ext:gc)
(print (list (length *kept*) (reduce #'+ *kept* :key #'first) (mod (expt 3 50000) 1000007)))
(ext:saveinitmem "image.mem" :quiet t)
END
# CLISP says on standard error what lies in its heap's addresses.
clisp -q -norc work.lisp 2>&1 | grep -v '^Bytes'
clisp -q -norc -M image.mem -x '(progn (ext:gc) (reduce (function +) *kept* :key (function first)))' 2>&1
